"""Moderation: a message is checked against each policy; the worst hit decides what happens."""

from enum import IntEnum
from typing import NamedTuple

import sgc


class Severity(IntEnum):
    NONE = 0
    LOW = 1
    HIGH = 2


class Policy(NamedTuple):
    key: str
    text: str
    severity: Severity


POLICIES = (
    Policy("spam", "The message advertises something nobody asked for.", Severity.LOW),
    Policy("insult", "The message attacks a person.", Severity.LOW),
    Policy("threat", "The message threatens somebody.", Severity.HIGH),
)
WHITELIST = {"thanks", "thank you", "ok", "hello"}


@sgc.function
def violates(s, message: str, policy_text: str):
    s += f"Policy: {policy_text}\nMessage: {message}\nDoes the policy apply to the message? "
    s += sgc.select("applies", choices=["yes", "no"])
    return s["applies"] == "yes"


@sgc.function
def program(s, message: str, author: str, strikes: dict[str, int]):
    if message.strip().lower().rstrip("!.") in WHITELIST:
        return "pass"

    hits = [p for p in POLICIES if violates(message, p.text).ret_value]
    worst = max((p.severity for p in hits), default=Severity.NONE)
    if worst is Severity.NONE:
        return "pass"

    names = ", ".join(p.key for p in hits)
    count = strikes.get(author, 0) + 1
    s += f"{author} wrote: {message}\nPolicies: {names}. This is strike {count}.\n"
    if worst == Severity.HIGH or count >= 3:
        s += "The account is suspended. Notice to the user:" + sgc.gen("notice", max_tokens=60)
        return "suspended"
    s += "A friendly warning:" + sgc.gen("notice", max_tokens=40, stop="\n")
    if not s["notice"].strip():
        s += " Please mind the rules."
    return f"warned:{count}"


ARGUMENTS = [
    {"message": "Buy my pills, you idiots", "author": "joe99", "strikes": {"joe99": 2}},
    {"message": "Thanks!", "author": "ann", "strikes": {}},
    {"message": "I will find you.", "author": "max", "strikes": {"joe99": 2}},
]
REPLIES = [" Please be kind to each other.", "\n", "", " This is your last warning.\nThe team"]
