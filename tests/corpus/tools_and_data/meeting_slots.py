"""Calendars of several people: free slots are intersected, the model ranks them, one is booked."""

from dataclasses import asdict, dataclass

import sgc


@dataclass(order=True, frozen=True)
class Slot:
    start: int  # minutes after midnight
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        (h, m), (i, n) = divmod(self.start, 60), divmod(self.end, 60)
        return f"{h:02d}:{m:02d}-{i:02d}:{n:02d}"


def free(busy: list[tuple[int, int]], day: tuple[int, int] = (540, 1020)) -> list[Slot]:
    slots, cursor = [], day[0]
    for start, end in sorted(busy):
        if start > cursor:
            slots.append(Slot(cursor, start))
        cursor = max(cursor, end)
    return [*slots, Slot(cursor, day[1])] if cursor < day[1] else slots


def intersect(a: list[Slot], b: list[Slot]) -> list[Slot]:
    both = (Slot(max(x.start, y.start), min(x.end, y.end)) for x in a for y in b)
    return [slot for slot in both if slot.length > 0]


@sgc.tool
def book(start: int, length: int, title: str) -> dict:
    if not title.strip():
        raise ValueError("a meeting needs a title")
    return {"id": start * 1000 + length, "title": title.strip().title()}


@sgc.function
def program(s, calendars: dict[str, list[tuple[int, int]]], minutes: int, topic: str):
    common = [Slot(540, 1020)]
    for busy in calendars.values():
        common = intersect(common, free(busy))
    options = [Slot(c.start, c.start + minutes) for c in common if c.length >= minutes][:4]
    if not options:
        s += f"{', '.join(calendars)} have no {minutes} minutes in common. Instead:"
        s += sgc.gen("suggestion", max_tokens=40, stop="\n")
        return s["suggestion"].strip()
    letters = "abcd"[: len(options)]
    for letter, slot in zip(letters, options):
        s += f"{letter}) {slot}\n"
    s += f"Best for {topic}: " + sgc.select("best", choices=list(letters)) + "\n"
    chosen = options[letters.index(s["best"])]
    s += "Title:" + sgc.gen("title", max_tokens=8, stop="\n")
    try:
        booked = book(chosen.start, minutes, s["title"])
    except ValueError:
        booked = book(chosen.start, minutes, topic or "meeting")
    return {**booked, **asdict(chosen)}


ARGUMENTS = [
    {"calendars": {"Ana": [(600, 720)], "Bo": [(540, 570)]}, "minutes": 30, "topic": "money"},
    {"calendars": {"Cy": [(0, 1440)]}, "minutes": 15, "topic": ""},
]
REPLIES = [" budget round", " ", " How about tomorrow?", " Lunch talk"]
