"""E-mails to to-do items: who does what by when, with dates that are relative to the mail's day."""

import json
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

import sgc


class Action(BaseModel):
    who: str = Field(max_length=16)
    what: str = Field(max_length=60)
    due: Literal["today", "tomorrow", "next week", "no date"] = "no date"


OFFSETS = {"today": 0, "tomorrow": 1, "next week": 7}


def due_day(day: int, due: str) -> int | None:
    return day + OFFSETS[due] if due in OFFSETS else None


@sgc.function
def extract_action(s, sentence: str):
    s += f"Sentence: {sentence}\nAction: "
    s += sgc.gen("action", json_schema=Action, max_tokens=80)
    try:
        return Action.model_validate_json(s["action"])
    except ValidationError as e:
        return f"{len(e.errors())} problems"


@sgc.function
def program(s, mail: str, day: int, me: str):
    sentences = [part.strip() for part in mail.replace("\n", " ").split(".") if part.strip()]
    todo, skipped = [], 0
    for sentence in sentences:
        s += f"'{sentence}': is it a request? "
        s += sgc.select("request", choices=["yes", "no"]) + "\n"
        if s["request"] == "no":
            continue
        action = extract_action(sentence).ret_value
        if isinstance(action, str):
            s += f"(could not be read: {action})\n"
            skipped += 1
            continue
        todo.append((due_day(day, action.due), action))
    todo.sort(key=lambda pair: (pair[0] is None, pair[0] or 0))
    for due, action in todo:
        mark = "!" if action.who.lower() == me.lower() else " "
        when = f"day {due}" if due is not None else "any time"
        s += f"[{mark}] {action.who}: {action.what} ({when})\n"
    return json.dumps([a.model_dump() for _, a in todo]), skipped


ARGUMENTS = [
    {
        "mail": "Hi all. Mia, please send the slides today. Nice weather.",
        "day": 3,
        "me": "Mia",
    },
    {"mail": "", "day": 1, "me": ""},
]
REPLIES = ["Mia", "send the slides", "mia", "?"]
