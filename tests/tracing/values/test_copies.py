"""Copies of what is known only at run time: `copy.copy`, `copy.deepcopy`, `asdict`, `replace`."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass, field, replace

from control_flow import agree

import sgc

REPLIES = ["12", "3", '{"a": ["b"]}', "[1, 2]", "x", ""]


@dataclass
class Booking:
    name: str = ""
    n: int = 0
    tags: list[str] = field(default_factory=list)


def test_texts_and_numbers_are_their_own_copies() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("n", regex="[0-9]{1,2}", max_tokens=2) + sgc.gen("a", max_tokens=9)
        booking = Booking(s["a"], int(s["n"]), ["t", s["a"]])
        other = replace(booking, n=booking.n + 1)
        held = copy.deepcopy([s["a"], {"n": int(s["n"])}])
        held[1]["n"] += 1
        s += str(copy.copy(s["a"]) == s["a"])
        return asdict(booking), asdict(other), held

    agree(program, REPLIES, q="x")


def test_a_deep_copy_of_a_list_or_of_json_is_a_value_of_its_own() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        parts = s["a"].split(",")
        more = copy.deepcopy(parts)
        more.append("z")
        try:
            data = json.loads(s["a"])
        except ValueError:
            data = None
        if data is None:
            return parts, more
        return parts, more, copy.deepcopy(data)

    agree(program, REPLIES, q="x")
