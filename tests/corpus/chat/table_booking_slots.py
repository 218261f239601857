"""Slot filling: asks for what is missing until a table can be booked, or gives up."""

import re
from dataclasses import asdict, dataclass, fields

import sgc


@dataclass
class Booking:
    guests: int | None = None
    day: str | None = None
    time: str | None = None

    def missing(self) -> list[str]:
        return [f.name for f in fields(self) if getattr(self, f.name) is None]


DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
PATTERNS = {"guests": r"\b(\d{1,2})\b", "time": r"\b(\d{1,2}:\d{2})\b"}


def read_slot(slot: str, text: str):
    if slot == "day":
        return next((d for d in DAYS if d in text.lower()), None)
    found = re.search(PATTERNS[slot], text)
    value = found and found[1]
    return int(value) if value and slot == "guests" else value


@sgc.tool(effect="effect")
def book_table(guests: int, day: str, time: str) -> str:
    if guests > 12:
        raise ValueError("we have no table for more than 12")
    return f"T{guests}-{day[:3].upper()}-{time.replace(':', '')}"


@sgc.function(max_turns=8)
def program(s, messages: list[str]):
    booking = Booking()
    waiting = list(messages)
    s += sgc.system("You book tables. Ask for one missing detail at a time. Closed on Sundays.")
    while waiting:
        text = waiting.pop(0)
        s += sgc.user(text)
        for slot in booking.missing():
            value = read_slot(slot, text)
            if value is not None:
                setattr(booking, slot, value)
        missing = booking.missing()
        if not missing:
            break
        s += sgc.assistant(sgc.gen("question", max_tokens=32))
    if booking.missing():
        return {"status": "incomplete", "missing": booking.missing()}
    try:
        code = book_table(**asdict(booking))
    except ValueError as e:
        s += sgc.assistant(f"I am sorry, {e}. " + sgc.gen("apology", max_tokens=32))
        return {"status": "refused"}
    s += sgc.assistant(f"Your code is {code}. " + sgc.gen("bye", max_tokens=16))
    return {"status": "booked", "code": code}


ARGUMENTS = [
    {"messages": ["A table for 4, please", "On Friday", "at 19:30"]},
    {"messages": ["20 people, Monday, 12:00"]},
    {"messages": []},
]
REPLIES = ["For which day?", "At what time?", "Enjoy!", "Perhaps two tables?"]
