"""A stand-up bot: notes of a team are grouped by person, summarised, and blockers are listed."""

from collections import defaultdict
from itertools import groupby

import sgc

Note = tuple[str, str, str]  # person, kind, text
KINDS = ("done", "next", "blocked")


@sgc.function
def digest(s, person: str, notes: list[list[str]]):
    s += f"Notes of {person}:\n"
    ordered = sorted(notes, key=lambda note: KINDS.index(note[0]))
    for kind, group in groupby(ordered, key=lambda note: note[0]):
        s += f"  {kind}: " + "; ".join(text for _, text in group) + "\n"
    s += "In one sentence:" + sgc.gen("sentence", max_tokens=40, stop="\n")
    return s["sentence"].strip()


@sgc.function
def program(s, notes: list[Note], team: list[str]):
    by_person: dict[str, list] = defaultdict(list)
    blockers = []
    for person, kind, text in notes:
        if kind not in KINDS:
            raise ValueError(f"{person}: what is '{kind}'?")
        by_person[person].append([kind, text])
        if kind == "blocked":
            blockers.append(f"{person} ({text})")

    lines = {}
    for person in sorted(by_person):
        lines[person] = digest(person, by_person[person]).ret_value
    silent = sorted(set(team) - set(by_person))
    s += "# Stand-up\n"
    width = max((len(p) for p in lines), default=0)
    for person, line in lines.items():
        s += f"{person:<{width}} | {line}"[:72].rstrip(" |") + "\n"
    if silent:
        s += "Not heard of: " + ", ".join(silent) + "\n"
    if blockers:
        s += f"{len(blockers)} blocked: " + ", ".join(blockers) + "\n"
        s += "Who could help whom?" + sgc.gen("help", max_tokens=40, stop="\n")
        return s["help"].strip()
    return None


ARGUMENTS = [
    {
        "notes": [
            ("Mia", "done", "login page"),
            ("Tom", "blocked", "no access to the database"),
            ("Mia", "next", "sign-up page"),
            ("Mia", "done", "tests"),
        ],
        "team": ["Mia", "Tom", "Zoe"],
    },
    {"notes": [], "team": []},
    {"notes": [("Mia", "lunch", "pizza")], "team": ["Mia"]},
]
REPLIES = [" Mia did the login page.", " Tom waits.", " Mia has access and could help Tom.", ""]
