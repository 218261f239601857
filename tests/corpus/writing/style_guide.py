"""Edits a text to a style guide: each sentence is rewritten until the rules are content."""

from __future__ import annotations

import re
from collections.abc import Callable

import sgc

Rule = Callable[[str], "str | None"]
RULES: list[Rule] = []


def rule(f: Rule) -> Rule:
    """Registers a check; it says what is wrong, or None."""
    RULES.append(f)
    return f


@rule
def no_hype(sentence: str) -> str | None:
    words = {"leverage", "synergy", "revolutionary", "seamless"} & set(
        re.findall(r"\w+", sentence.lower())
    )
    return f"avoid {', '.join(sorted(words))}" if words else None


@rule
def no_passive(sentence: str) -> str | None:
    m = re.search(r"\b(was|were|been|is|are)\s+(\w+ed)\b", sentence)
    return f"'{m.group()}' is passive" if m else None


@rule
def not_too_long(sentence: str) -> str | None:
    n = len(sentence.split())
    return f"{n} words are too many" if n > 12 else None


def complaints(sentence: str) -> list[str]:
    return [c for c in (check(sentence) for check in RULES) if c]


@sgc.function
def rewrite(s, sentence: str, rounds_left: int):
    wrong = complaints(sentence)
    if not wrong or rounds_left == 0:
        return sentence, 0, not wrong
    s += f"Sentence: {sentence}\nProblems: {'; '.join(wrong)}\nBetter:"
    s += sgc.gen("better", max_tokens=40, stop="\n")
    better = s["better"].strip() or sentence
    final, rounds, clean = rewrite(better, rounds_left - 1).ret_value
    return final, rounds + 1, clean


@sgc.function
def program(s, text: str, max_rounds: int = 2):
    sentences = re.findall(r"[^.!?]+[.!?]", text)
    edited, total, dirty = [], 0, 0
    for sentence in map(str.strip, sentences):
        new, rounds, clean = rewrite(sentence, max_rounds).ret_value
        edited.append(new)
        total += rounds
        dirty += not clean
    s += "Before: " + text + "\nAfter: " + " ".join(edited) + "\n"
    if dirty:
        s += f"{dirty} of {len(sentences)} sentences still break the guide. Is the meaning kept? "
        s += sgc.select("kept", choices=["yes", "no"])
        if s["kept"] == "no":
            return {"text": text, "rounds": total, "accepted": False}
    return {"text": " ".join(edited), "rounds": total, "accepted": True}


ARGUMENTS = [
    {"text": "We leverage a seamless platform. The bug was fixed. Try it!"},
    {"text": "No end", "max_rounds": 1},
    {"text": "The report, for which everybody in the whole building had waited, was printed."},
]
REPLIES = [" We use one platform.", " The team fixed the bug.", " The synergy was leveraged.", " "]
