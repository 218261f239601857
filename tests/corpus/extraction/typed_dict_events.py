"""Events into TypedDicts, normalised with datetime of given values, sorted by tuple keys."""

import json
from datetime import date, datetime, timedelta
from typing import TypedDict, cast

import sgc


class Event(TypedDict, total=False):
    title: str
    day: str
    hours: float


def parse_day(text: str) -> date | None:
    for fmt in ("%Y-%m-%d", "%d.%m.%Y"):
        try:
            return datetime.strptime(text, fmt).date()
        except ValueError:
            continue
    return None


@sgc.function
def program(s, text: str, today: str = "2024-05-06"):
    now = date.fromisoformat(today)
    s += f"Today is {now:%A, %d %B %Y}.\nText: {text}\nEvents as a JSON list:"
    s += sgc.gen("events", max_tokens=120)
    try:
        events = cast(list[Event], json.loads(s["events"]))
    except json.JSONDecodeError:
        events = []
    rows = []
    if not isinstance(events, list):
        events = [events]
    for event in events:
        if not isinstance(event, dict):
            continue
        day = parse_day(str(event.get("day", "")))
        if day is None:
            continue
        delta = (day - now).days
        rows.append((delta, event.get("title", "untitled"), float(event.get("hours") or 1)))
    rows.sort(key=lambda r: (r[0], r[1]))
    upcoming = [
        f"{title} in {delta} days ({hours:g} h)" for delta, title, hours in rows if 0 <= delta < 60
    ]
    until = (now + timedelta(days=60)).isoformat()
    s += f"\nUntil {until}: " + ("; ".join(upcoming) or "nothing")
    s += "\nAdvice:" + sgc.gen("advice", max_tokens=24)
    return upcoming, len(rows)


ARGUMENTS = [{"text": "Dentist next week"}, {"text": "", "today": "2024-02-29"}]
REPLIES = [
    '[{"title": "Dentist", "day": "2024-05-13"}, {"title": "Party", "day": "01.06.2024", "hours": 5}]',
    '[{"title": "Old", "day": "2020-01-01"}, {"day": "soon"}, 3]',
    '{"title": "One", "day": "2024-03-01", "hours": 2.5}',
    "none",
    "Be early.",
]
