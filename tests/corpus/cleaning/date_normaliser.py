"""Turns dates of any spelling into ISO dates: formats, then the model, and calendar checks."""

from datetime import date, datetime

import sgc

FORMATS = ["%Y-%m-%d", "%d.%m.%Y", "%B %d, %Y", "%d %b %Y"]


def try_formats(text):
    for fmt in FORMATS:
        try:
            return datetime.strptime(text, fmt).date()
        except ValueError:
            continue
    return None


@sgc.function
def ask(s, text: str, reference: str):
    s += f"Today is {reference}. Which date is meant by {text!r}?\n"
    s += "Year: " + sgc.gen("year", regex="(19|20)[0-9][0-9]")
    s += "\nMonth: " + sgc.gen("month", regex="1[0-2]|[1-9]")
    s += "\nDay: " + sgc.gen("day", regex="3[01]|[12][0-9]|[1-9]")
    return int(s["year"]), int(s["month"]), int(s["day"])


@sgc.function
def program(s, dates: list[str], reference: str = "2024-05-17"):
    today = date.fromisoformat(reference)
    iso = []
    problems = []
    for text in dates:
        text = text.strip()
        if text == "":
            iso.append(None)
            continue
        d = try_formats(text)
        if d is None:
            year, month, day = ask(text, reference).ret_value
            try:
                d = date(year, month, day)
            except ValueError as e:
                problems.append(f"{text}: {e}")
                iso.append(None)
                continue
        if d > today:
            problems.append(f"{text}: in the future by {(d - today).days} days")
        iso.append(d.isoformat())
    if problems:
        s += "Dates that look wrong:\n" + "\n".join("* " + p for p in problems)
        s += "\nQuestion to the person who typed them:" + sgc.gen(
            "question", max_tokens=40, stop="\n"
        )
    return iso


ARGUMENTS = [
    {"dates": ["2023-04-01", "1.2.2024", "May 5, 2031", "the day before yesterday", "last spring"]},
    {"dates": ["", "   "]},
    {"dates": ["31 Feb 2020"], "reference": "2020-01-01"},
]
REPLIES = ["2024", "2", "31", "15", " Which year do you mean?"]
