"""The game of 24 as in the Tree of Thoughts paper: one operation a step, checked with fractions."""

import re
from fractions import Fraction

import sgc

STEP = re.compile(r"(\d+(?:/\d+)?)\s*([-+*/])\s*(\d+(?:/\d+)?)")


def apply(left: list[Fraction], text: str) -> list[Fraction] | None:
    """The numbers that are left after a step, or None if it is not allowed."""
    m = STEP.search(text)
    if not m:
        return None
    a, op, b = Fraction(m[1]), m[2], Fraction(m[3])
    rest = list(left)
    try:
        rest.remove(a)
        rest.remove(b)
        result = {"+": a + b, "-": a - b, "*": a * b}[op] if op != "/" else a / b
    except (ValueError, ZeroDivisionError):
        return None
    return [*rest, result]


@sgc.function(max_turns=4)
def program(s, numbers: list[int], width: int = 3):
    left = [Fraction(n) for n in numbers]
    steps: list[str] = []
    s += f"Use the numbers {' '.join(map(str, numbers))} and + - * / to make 24.\n"
    while len(left) > 1:
        s += f"Left: {', '.join(str(x) for x in left)}\nNext:"
        tries = s.fork(width)
        for t in tries:
            t += sgc.gen("step", max_tokens=12, temperature=0.9, stop="\n")
        options = [(t["step"].strip(), apply(left, t["step"])) for t in tries]
        legal = [(text, rest) for text, rest in options if rest is not None]
        if not legal:
            s += " (stuck)\n"
            return {"solved": False, "steps": steps}
        # Prefer a step that wins at once; else the one whose largest number is closest to 24.
        text, left = min(legal, key=lambda o: min(abs(x - 24) for x in o[1]))
        steps.append(text)
        s += " " + text + "\n"
    solved = bool(left) and left[0] == 24
    s += f"Result: {left[0] if left else 'nothing'}\n"
    if not solved:
        s += "What went wrong?" + sgc.gen("post_mortem", max_tokens=32, stop="\n")
    return {"solved": solved, "steps": steps}


ARGUMENTS = [{"numbers": [4, 6]}, {"numbers": [2, 3, 4]}, {"numbers": []}, {"numbers": [24]}]
REPLIES = [" 4 * 6 = 24", " 2 * 3 = 6 (left: 4 6)", " 3 / 0", " I do not know", " 2 + 4", " 4 - 6"]
