"""Small chunks are matched, their parents are read: hits vote for sections of a manual."""

from collections import Counter
from typing import NamedTuple

import sgc


class Chunk(NamedTuple):
    parent: str
    n: int
    text: str


MANUAL = {
    "Setup": "Plug it in. Press the green button. Wait for the beep.",
    "Cleaning": "Unplug it first. Use a wet cloth. Never use soap.",
    "Errors": "E1 means no water. E2 means too hot. E3: call us.",
}


def chunks(manual: dict[str, str]):
    for title, body in manual.items():
        for n, sentence in enumerate(body.split(". ")):
            yield Chunk(title, n, sentence.rstrip("."))


@sgc.tool(effect="pure")
def find(query: str) -> list[list]:
    words = set(query.lower().split())
    return [[c.parent, c.n] for c in chunks(MANUAL) if words & set(c.text.lower().split())]


@sgc.function
def program(s, question: str, language: str = "English"):
    """Returns (section, answer)."""
    hits = find(question)
    votes = Counter(parent for parent, _ in hits)
    if not votes:
        s += f"Sections: {', '.join(MANUAL)}\nThe question '{question}' belongs to section "
        s += sgc.select("section", choices=list(MANUAL)) + "\n"
        section = s["section"]
    else:
        section, n = votes.most_common(1)[0]
        rivals = [p for p, m in votes.items() if m == n and p != section]
        if rivals:
            s += f"'{question}': section "
            s += sgc.select("tie", choices=[section, *rivals]) + "\n"
            section = s["tie"]
    s += f"## {section}\n{MANUAL[section]}\n"
    s += f"Question: {question}\nAnswer in {language}:"
    s += sgc.gen("answer", max_tokens=32, stop="\n")
    answer = s["answer"].strip()
    return (section, answer) if answer else (section, MANUAL[section])


ARGUMENTS = [
    {"question": "what does E2 mean"},
    {"question": "soap or button", "language": "German"},
    {"question": "warranty"},
]
REPLIES = [" It is too hot.", " Nein, keine Seife.", ""]
