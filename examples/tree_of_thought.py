"""Tree of thought: three ways to a solution, each continued by its own answer, and a vote."""

import sgc

WAYS = 3


@sgc.function
def tree_of_thought(s, question):
    s += "Question: " + question + "\n"
    thoughts = s.fork(WAYS)
    for thought in thoughts:
        thought += "Let us think step by step."
        thought += sgc.gen("steps", max_tokens=48, stop="\n", temperature=0.7) + "\n"
        thought += "So the answer is" + sgc.gen("answer", max_tokens=8, stop=[".", "\n"])
    first, second, third = [thought["answer"].strip() for thought in thoughts]
    if first == second or first == third:
        winner = first
    elif second == third:
        winner = second
    else:
        # No two agree: the model chooses among them.
        s += f"Answers:\n1. {first}\n2. {second}\n3. {third}\nThe right one is number "
        s += sgc.select("vote", choices=["1", "2", "3"]) + "\n"
        winner = {"1": first, "2": second, "3": third}[s["vote"]]
    s += "Answer: " + winner
    return winner
