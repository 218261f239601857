"""An answer with [n] citations: each cited sentence is verified, bad citations are struck out."""

import re
import textwrap
from functools import wraps

import sgc

CITE = re.compile(r"\[(\d+)\]")


def as_list(generator):
    @wraps(generator)
    def listed(*args, **kwargs):
        return list(generator(*args, **kwargs))

    return listed


@as_list
def sentences(text: str):
    for part in re.split(r"(?<=[.!?])\s+", text):
        if part := part.strip():
            yield part


@sgc.function
def supported(s, claim: str, source: str) -> bool:
    s += f"Source: {source}\nClaim: {claim}\nDoes the source support the claim? "
    s += sgc.select("verdict", choices=["supported", "contradicted", "unrelated"])
    return s["verdict"]


@sgc.function
def program(s, question: str, sources: list[str]):
    s += "Answer with citations such as [1].\n"
    for n, source in enumerate(sources, 1):
        s += f"[{n}] {source}\n"
    s += f"Question: {question}\nAnswer:"
    s += sgc.gen("answer", max_tokens=120)
    kept, problems = [], []
    for sentence in sentences(s["answer"]):
        if not (numbers := [int(n) for n in CITE.findall(sentence)]):
            problems.append(("uncited", sentence))
            continue
        claim = CITE.sub("", sentence).strip()
        good = []
        for n in numbers:
            in_range = 1 <= n <= len(sources)
            verdict = supported(claim, sources[n - 1]).ret_value if in_range else "no source"
            if verdict == "supported":
                good.append(n)
            else:
                problems.append((verdict, sentence))
        if good:
            marks = "".join(f"[{n}]" for n in good)
            kept.append(f"{claim} {marks}")
    s += "\nVerified:\n" + textwrap.indent("\n".join(kept) or "(nothing)", "  ")
    return kept, problems


ARGUMENTS = [
    {"question": "How long do swifts fly?", "sources": ["For ten months.", "They eat in flight."]},
    {"question": "Why?", "sources": []},
]
REPLIES = [
    " Swifts fly for ten months [1]. They eat in flight [2][1]. Amazing!",
    " They sleep on the ground [3].",
    " I have no idea.",
]
