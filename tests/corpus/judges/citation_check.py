"""Splits an answer into claims and checks each against the sources that it cites (AIS style)."""

import re
from collections import defaultdict
from typing import Literal

import sgc

Status = Literal["supported", "contradicted", "missing"]
CITATION = re.compile(r"\[(\d+)\]")


def split_claims(answer: str) -> list[str]:
    return [c.strip() for c in re.split(r"(?<=[.!?])\s+", answer) if c.strip()]


@sgc.function
def check_claim(s, claim: str, source: str):
    s += f"Source: {source}\nClaim: {claim}\nThe claim is "
    s += sgc.select("status", choices=["supported", "contradicted", "missing"])
    s += " by/in the source."
    return s["status"]


@sgc.function
def program(s, question: str, sources: dict[str, str]):
    """Returns the claims by status, and a repaired answer if any is not supported."""
    listing = "\n".join(f"[{key}] {text}" for key, text in sources.items())
    s += sgc.user(f"{listing}\n\nAnswer with citations like [1].\nQuestion: {question}")
    s += sgc.assistant(sgc.gen("answer", max_tokens=150))

    by_status: dict[str, list[str]] = defaultdict(list)
    for claim in split_claims(s["answer"]):
        cited = CITATION.findall(claim)
        if not cited:
            by_status["uncited"].append(claim)
            continue
        statuses = set()
        for number in cited[:2]:
            if number not in sources:
                statuses.add("missing")
            else:
                statuses.add(check_claim(CITATION.sub("", claim), sources[number]).ret_value)
        if "contradicted" in statuses:
            by_status["contradicted"].append(claim)
        elif "supported" in statuses:
            by_status["supported"].append(claim)
        else:
            by_status["missing"].append(claim)

    wrong = by_status["contradicted"] + by_status["missing"]
    if wrong:
        todo = "\n".join(f"- {c}" for c in wrong)
        s += sgc.user(f"Not backed by the sources:\n{todo}\nRewrite the answer without them.")
        s += sgc.assistant(sgc.gen("repaired", max_tokens=150))
    return {k: len(v) for k, v in by_status.items() if v}


ARGUMENTS = [
    {
        "question": "When was the bridge built?",
        "sources": {"1": "The bridge opened in 1894.", "2": "It was closed for repairs in 1990."},
    },
    {"question": "Who?", "sources": {}},
]
REPLIES = [
    "The bridge opened in 1894 [1]. It was repaired in 1990 [2].",
    "It is very old. Nobody knows more [7].",
    "In 1894 [1][2]!",
    "I do not know",
    "",
]
