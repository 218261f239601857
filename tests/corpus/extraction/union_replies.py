"""A reply is one of several dataclasses; match on classes picks what happens."""

import json
from dataclasses import dataclass

import sgc


@dataclass
class Answer:
    text: str


@dataclass
class Question:
    text: str
    options: list[str]


@dataclass
class Refusal:
    reason: str = "none given"


def parse(raw: str) -> Answer | Question | Refusal:
    try:
        data = json.loads(raw)
    except ValueError:
        return Answer(raw.strip())
    match data:
        case {"kind": "answer", "text": str(text)}:
            return Answer(text)
        case {"kind": "question", "text": str(text), "options": [*options]} if len(options) >= 2:
            return Question(text, [str(o) for o in options])
        case {"kind": "refusal", "reason": reason}:
            return Refusal(str(reason))
        case {"kind": "refusal"}:
            return Refusal()
        case [first, *_]:
            return Answer(str(first))
        case int() | float() as number:
            return Answer(f"{number:.1f}")
        case _:
            return Refusal(f"cannot read {type(data).__name__}")


@sgc.function
def program(s, user: str, turns: int = 3):
    s += sgc.system("Reply in JSON.") + sgc.user(user)
    for _ in range(turns):
        s += sgc.assistant(sgc.gen("raw", max_tokens=60))
        reply = parse(s["raw"])
        match reply:
            case Answer(text=text):
                return "answer", text
            case Question(text, [first, second, *others]):
                s += sgc.user(f"{first}, not {second} (or {len(others)} others)")
            case Refusal(reason):
                s += sgc.user(f"Why? You said: {reason}")
    return "nothing", None


ARGUMENTS = [{"user": "Book a table"}]
REPLIES = [
    '{"kind": "answer", "text": "done"}',
    '{"kind": "question", "text": "when?", "options": ["7", "8", 9]}',
    '{"kind": "question", "text": "when?", "options": []}',
    '{"kind": "refusal"}',
    '{"kind": "refusal", "reason": 3}',
    "[1, 2]",
    "4",
    "plain",
    "null",
]
