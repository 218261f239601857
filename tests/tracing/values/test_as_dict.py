"""`asdict` and `astuple` of objects that hold values known only at run time."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc

REPLIES = ["4 mon", "mon", "12", "", "7 sun x"]


@dataclass
class Slot:
    n: int | None = None
    day: str = ""
    more: list[str] = field(default_factory=list)


@dataclass
class Outer:
    slot: Slot
    tag: str = "t"


def filled(text: str) -> Slot:
    slot = Slot()
    for word in text.split():
        if word.isdigit():
            slot.n = int(word)
        elif slot.day:
            slot.more.append(word)
        else:
            slot.day = word
    return slot


def booked(n: int, day: str, more: list[str]) -> str:
    if n > 10:
        raise ValueError("too many")
    return f"{n}/{day}/{len(more)}"


@pytest.mark.slow
def test_its_items_are_keyword_arguments() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        slot = filled(s["a"])
        if slot.n is None:
            return asdict(slot)
        try:
            code = booked(**asdict(slot))
        except ValueError as error:
            code = str(error)
        s += f"{code} {astuple(slot)}"
        return {**asdict(slot), "code": code}

    agree(program, REPLIES, q="x", n=16)


def test_of_a_known_object() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        slot = Slot(day=s["a"].strip())
        whole = Outer(slot, s["a"])
        found = asdict(whole)
        slot.more.append("later")
        s += f"{found} {list(found)} {found['slot']['day']}"
        if found["slot"]["day"] == "mon":
            return astuple(whole)
        return asdict(slot)["more"], found["slot"]["more"]

    agree(program, REPLIES, q="x", n=16)


def test_what_it_gives_is_a_copy() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        slot = filled(s["a"])
        found = asdict(slot)
        found["day"] = "never"
        found["more"].append("!")
        s += f"{found} {slot.day} {slot.more}"
        return found

    equal_or_refused(program, REPLIES)


def test_values_out_of_json() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        slot = Slot(n=json.loads(s["a"]))
        given: dict[str, Any] = asdict(slot)
        s += f"{given['n']}" + ",".join(given)
        return given

    agree(program, ["1", "null", "[1, [2]]", '{"a": {}}', "true"], q="x", n=16)
