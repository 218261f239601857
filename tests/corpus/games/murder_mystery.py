"""A detective questions suspects, weighs what they say of each other, and accuses one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TypedDict

import sgc


class Suspect(TypedDict):
    name: str
    knows: str
    guilty: bool


QUESTIONS = ["Where were you at nine?", "Who did you see?"]
PLACES = ("kitchen", "garden", "library")


@contextmanager
def section(s, title: str):
    s += f"\n## {title}\n"
    yield s
    s += "---\n"


def places_in(text: str) -> set[str]:
    return {p for p in PLACES if p in text.lower()}


@sgc.function
def interview(s, suspect: Suspect, victim: str):
    lie = "Lie about where you were." if suspect["guilty"] else "Tell the truth."
    s += sgc.system(
        f"You are {suspect['name']}. {victim} was murdered. You know: {suspect['knows']} {lie}"
    )
    statements = []
    for q in QUESTIONS:
        s += sgc.user(q)
        s += sgc.assistant(sgc.gen("a", max_tokens=32))
        statements.append(s["a"])
    return statements


@sgc.function
def program(s, victim: str, suspects: list[Suspect]):
    statements = {x["name"]: interview(x, victim).ret_value for x in suspects}
    s += f"You are a detective. {victim} was murdered in the library.\n"
    suspicion = dict.fromkeys(statements, 0)
    with section(s, "Statements"):
        for name, (where, whom) in statements.items():
            s += f"{name}: {where} / {whom}\n"
            if not places_in(where):
                suspicion[name] += 1  # evasive
            elif "library" in places_in(where):
                suspicion[name] += 2
            for other in statements:
                if other != name and other.lower() in whom.lower():
                    suspicion[other] += 1
    if not suspects:
        return None

    ranking = sorted(suspicion, key=suspicion.get, reverse=True)
    s += f"\nMost suspicious so far: {', '.join(ranking[:2])}.\nReasoning:"
    s += sgc.gen("reasoning", max_tokens=80, stop="\n\n")
    s += "\nI accuse " + sgc.select("accused", choices=ranking) + "!"
    culprit = next((x["name"] for x in suspects if x["guilty"]), None)
    if s["accused"] != culprit:
        s += f"\nBut it was {culprit or 'an accident'}. What did you overlook?" + sgc.gen(
            "overlooked", max_tokens=32
        )
    return {"accused": s["accused"], "right": s["accused"] == culprit, "suspicion": suspicion}


ARGUMENTS = [
    {
        "victim": "Lord Finch",
        "suspects": [
            {"name": "Mina", "knows": "You saw Paul in the library.", "guilty": False},
            {"name": "Paul", "knows": "You did it with the candlestick.", "guilty": True},
            {"name": "Rose", "knows": "You slept.", "guilty": False},
        ],
    },
    {"victim": "the parrot", "suspects": [{"name": "Cat", "knows": "nothing", "guilty": False}]},
    {"victim": "nobody", "suspects": []},
]
REPLIES = [
    "I was in the kitchen all evening.",
    "In the library, with a book.",
    "I saw Paul by the stairs.",
    "That is none of your business.",
    "Mina was in the garden, I think.",
]
