"""Dates and events out of a biography, in order, with ages and the longest gap."""

import re
from typing import NamedTuple

import sgc


class Event(NamedTuple):
    year: int
    what: str
    certain: bool = True


EVENT_RE = re.compile(r"(?P<about>c\. ?|about )?(?P<year>\d{3,4})\s*[:–-]\s*(?P<what>\S.*)")


def parse_events(text: str) -> list[Event]:
    events = []
    for line in text.splitlines():
        if (m := EVENT_RE.search(line)) is not None:
            events.append(Event(int(m["year"]), m["what"].rstrip("."), not m["about"]))
    return events


@sgc.function
def program(s, biography: str):
    paragraphs = [p for p in biography.split("\n\n") if p.strip()]
    events: list[Event] = []
    for paragraph in paragraphs:
        f = s.fork(1)[0]
        f += f"{paragraph}\nEvents, one a line, as YEAR: what happened:\n"
        f += sgc.gen("events", max_tokens=80)
        new = parse_events(f["events"])
        if not new and re.search(r"\d{3,4}", paragraph):
            f += "\nThere is a year in the text. Again:\n" + sgc.gen("again", max_tokens=40)
            new = parse_events(f["again"])
        events.extend(e for e in new if e not in events)
    if not events:
        return "No dates."
    events.sort()
    born = next((e.year for e in events if "born" in e.what.lower()), None)
    s += "Timeline\n"
    for year, what, certain in events:
        age = f", aged {year - born}" if born is not None and year > born else ""
        century, rest = divmod(year - 1, 100)
        when = "early" if rest < 33 else "late" if rest > 65 else "mid"
        date = str(year) if certain else f"{when} {century + 1}th century"
        s += f"{date:>20} {what}{age}\n"
    gaps = [(b.year - a.year, a, b) for a, b in zip(events, events[1:])]
    if gaps:
        gap, a, b = max(gaps)
        if gap > 10:
            s += f"What happened in the {gap} years between '{a.what}' and '{b.what}'?"
            s += sgc.gen("gap", max_tokens=40, stop="\n")
            return s["gap"].strip()
    return len(events)


ARGUMENTS = [
    {"biography": "Hypatia was born around 355.\n\nShe taught from about 380 on. Killed in 415."},
    {"biography": "\n\n"},
    {"biography": "He was a quiet man."},
]
REPLIES = [
    "c. 355: was born in Alexandria",
    "about 380 - began to teach.\n415: was killed.",
    "She was a philosopher.",
    " She wrote commentaries.",
]
