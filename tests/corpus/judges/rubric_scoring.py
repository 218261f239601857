"""Scores an essay against a weighted rubric, one fork a criterion, and gives a letter grade."""

import functools
import re
from dataclasses import dataclass

import sgc


@dataclass(frozen=True)
class Criterion:
    name: str
    description: str
    weight: float = 1.0


RUBRIC = [
    Criterion("Thesis", "Is there one clear and arguable claim?", 2.0),
    Criterion("Evidence", "Are the claims backed by facts?", 1.5),
    Criterion("Style", "Is it a pleasure to read?"),
]
GRADES = [(4.5, "A"), (3.5, "B"), (2.5, "C")]


def clamp(text, lowest, highest):
    match = re.search(r"\d+", text)
    if match is None:
        return lowest
    return max(lowest, min(highest, int(match.group())))


to_score = functools.partial(clamp, lowest=1, highest=5)


def letter(mean):
    for limit, grade in GRADES:
        if mean >= limit:
            return grade
    return "D"


@sgc.function
def program(s, essay: str, strict: bool = False):
    s += sgc.system("You are a " + ("strict" if strict else "fair") + " teacher of English.")
    s += sgc.user(f"Here is the essay.\n<essay>\n{essay.strip()}\n</essay>")
    forks = s.fork(len(RUBRIC))
    for f, c in zip(forks, RUBRIC):
        f += sgc.user(
            f"Criterion: {c.name} (weight {c.weight:g})\n{c.description} Reason, then 1-5."
        )
        f += sgc.assistant(
            "Reason: "
            + sgc.gen("reason", max_tokens=80, stop="Score:")
            + "Score: "
            + sgc.gen("score", max_tokens=4)
        )

    total = 0.0
    weights = 0.0
    lines = []
    for f, c in zip(forks, RUBRIC):
        points = to_score(f["score"])
        if strict and points == 5:
            points -= 1
        total += points * c.weight
        weights += c.weight
        lines.append(f"{c.name:<10}{points}/5  {f['reason'].strip()}")
    mean = total / weights
    report = "\n".join(lines)
    s += sgc.user(
        "The scores:\n"
        + report
        + f"\nWeighted mean: {mean:.2f} ({letter(mean)})\nWrite to the student."
    )
    s += sgc.assistant(sgc.gen("letter", max_tokens=120))
    return round(mean, 2), letter(mean)


ARGUMENTS = [
    {"essay": "School uniforms should go.\n\nThey cost much and hide who we are.", "strict": False},
    {"essay": "   ", "strict": True},
]
REPLIES = [
    "The claim is clear from the first line.\nScore: 5",
    "There is hardly any evidence. 2",
    "4",
    "I would rate this 10 out of 10!",
    "No comment.",
]
