"""A tutor who does not tell: hints become stronger with each wrong answer of the pupil."""

from collections import Counter
from contextlib import suppress

import sgc

HINTS = ["Ask a question that helps.", "Give a small hint.", "Give the first step."]
NUMBER_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


def to_number(text):
    for word in text.lower().replace(",", " ").replace(".", " ").split():
        if word in NUMBER_WORDS:
            return NUMBER_WORDS[word]
        with suppress(ValueError):
            return int(word)
    return None


@sgc.function
def pupil(s, problem: str, hints: list[str]):
    s += "You are a pupil. You make mistakes.\n" + problem + "\n"
    for hint in hints:
        s += "Teacher: " + hint + "\n"
    s += "Your answer:" + sgc.gen("answers", n=3, max_tokens=16, stop="\n")
    return Counter(s["answers"]).most_common(1)[0][0]


@sgc.function
def program(s, problem: str, solution: int):
    s += sgc.system("You are a tutor. You never tell the solution.")
    s += sgc.user(problem)
    hints = []
    for level, instruction in enumerate(HINTS):
        answer = pupil(problem, hints).ret_value
        number = to_number(answer)
        if number == solution:
            s += sgc.user(answer)
            s += sgc.assistant("Well done! " + sgc.gen("praise", max_tokens=16))
            break
        if number is None:
            remark = "no number"
        elif number > solution:
            remark = f"{number - solution} too many"
        else:
            remark = f"{solution - number} too few"
        s += sgc.user(f"Pupil: {answer} ({remark}). {instruction}")
        s += sgc.assistant(sgc.gen("hint", max_tokens=40))
        hint = s["hint"].replace(str(solution), "***")
        hints.append(hint)
    else:
        s += sgc.assistant(f"Let us look at it tomorrow. It is {solution}.")
        return {"solved": False, "hints": len(hints)}
    return {"solved": True, "hints": level}


ARGUMENTS = [
    {"problem": "Anna has 7 apples and eats 3. How many are left?", "solution": 4},
    {"problem": "", "solution": 0},
]
REPLIES = [" four", " It is 10.", "3", " no idea", "Think of 4 fingers.", "You are clever."]
