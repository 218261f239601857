"""Summarises a long mail thread message by message, with a list of open questions at the end."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import sgc


@dataclass
class Mail:
    sender: str
    body: str

    @property
    def short(self) -> str:
        return textwrap.shorten(self.body, width=60, placeholder=" ...")


def unquote(body: str) -> str:
    kept = []
    for line in body.splitlines():
        if line.strip() == "--":
            break
        if not line.startswith(">"):
            kept.append(line)
    return "\n".join(kept).strip()


@sgc.function
def program(s, thread: list[Mail], max_words: int = 40):
    running = "(nothing yet)"
    questions = []
    people = {}
    for mail in thread:
        body = unquote(mail.body)
        if not body:
            continue
        people[mail.sender] = people.get(mail.sender, 0) + 1
        step = s.fork(1)[0]
        step += f"Summary so far: {running}\n{mail.sender} writes: {body}\n"
        step += f"Updated summary, at most {max_words} words:"
        step += sgc.gen("summary", max_tokens=2 * max_words, stop="\n")
        running = step["summary"].strip() or running
        if "?" in body:
            step += f"\nWas it answered later that {mail.sender} asked '{mail.short}'? "
            step += sgc.select("answered", choices=["yes", "no"])
            if step["answered"] == "no":
                questions.append(mail.short)
    s += f"Summary: {running}\n"
    if busiest := max(people, key=people.get, default=None):
        s += f"Most active: {busiest} ({people[busiest]} mails)\n"
    if questions:
        s += "Open questions:\n" + "\n".join(f"- {q}" for q in questions) + "\n"
        s += "Suggested reply:" + sgc.gen("reply", max_tokens=60)
    return running, questions


ARGUMENTS = [
    {
        "thread": [
            Mail("Ana", "Can we move the review to Tuesday?\n--\nAna, R&D"),
            Mail("Ben", "> Can we move\nFine with me. Who brings the prototype?"),
            Mail("Ana", "> Who brings\n"),
        ]
    },
    {"thread": []},
]
REPLIES = [" Ana wants Tuesday.", " Ben agrees and asks who brings it.", "", " I will bring it."]
