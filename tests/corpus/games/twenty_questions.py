"""Twenty questions: the model asks, an oracle that knows the secret answers, then it guesses."""

import sgc

ANIMALS = {
    "owl": {"flies", "feathers", "night", "eyes"},
    "penguin": {"feathers", "swims", "cold"},
    "bat": {"flies", "night", "fur"},
}


@sgc.tool(effect="pure")
def oracle(secret: str, question: str) -> str:
    """Answers from what it knows about the animal."""
    words = [w.strip("?,.!").lower() for w in question.split()]
    if secret not in ANIMALS:
        raise KeyError(secret)
    if secret in words:
        return "correct"
    return "yes" if any(w in ANIMALS[secret] for w in words) else "no"


@sgc.function(max_turns=20)
def program(s, secret: str, limit: int = 6):
    s += sgc.system("You play twenty questions. Ask yes/no questions. The answer is an animal.")
    asked = 0
    yes_count = 0
    solved = False
    while not solved and asked < limit:
        asked += 1
        s += sgc.user(f"Question {asked} of {limit}, please.")
        s += sgc.assistant(sgc.gen("question", max_tokens=24, stop="\n"))
        try:
            answer = oracle(secret, s["question"])
        except KeyError:
            return "I do not know this animal myself."
        if answer == "correct":
            solved = True
        elif answer == "yes":
            yes_count += 1
        s += sgc.user(answer.capitalize() + ".")

    if not solved:
        s += sgc.user("No questions left. What is it?")
        s += sgc.assistant("It is a" + sgc.gen("guess", max_tokens=4, stop="."))
        solved = secret in s["guess"].lower()
    result = "won" if solved else "lost"
    return {"result": result, "asked": asked, "yes": yes_count}


ARGUMENTS = [{"secret": "owl"}, {"secret": "penguin", "limit": 2}, {"secret": "unicorn"}]
REPLIES = [
    "Does it have feathers?",
    "Is it awake at night?",
    "Is it an owl?",
    "Can it be eaten?",
    "n owl.",
    " penguin",
]
