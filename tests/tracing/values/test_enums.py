"""Enumerations of the program's own: members by values and by names known only at run time."""

from __future__ import annotations

import json
from enum import Enum, Flag, IntEnum, StrEnum

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.errors import TraceError

POOL = ("red", "blue", " Red", "1", "2", "07", "", '{"c": "red"}', '{"c": 2}', '{"c": [1]}', "ROT")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"
    ROT = "red"  # an alias of RED
    ONE = 1
    PAIR = ("a", 1)


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mood(StrEnum):
    RED = "red"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value):
        if value.strip().lower() == "red":
            return cls.RED
        return cls.OTHER if value else None


class Bits(Flag):
    A = 1
    B = 2


@sgc.function
def by_value(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    colour = Colour(s["a"])
    s += colour.name
    if colour is Colour.RED:
        s += sgc.gen("b", max_tokens=3)


@sgc.function
def handled(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    try:
        s += f"{Colour(s['a'].strip().lower()).value!r}"
    except ValueError as error:
        s += f"({error})" + sgc.gen("b", max_tokens=3)


@sgc.function
def by_number(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    try:
        level = Level(int(s["a"]))
    except ValueError as error:
        s += str(error)
        return
    s += level.name + str(level + 1) + ("!" if level >= Level.HIGH else "")


@sgc.function
def with_missing(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    mood = Mood(s["a"])
    s += mood + sgc.gen("b", max_tokens=3)
    s += "red" if mood is Mood.RED else "other"


@sgc.function
def by_name(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    try:
        s += str(Colour[s["a"].upper()].value)
    except KeyError as error:
        s += f"none {error}"
    s += Colour["RED"].value


@sgc.function
def out_of_json(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    try:
        s += Colour(json.loads(s["a"])["c"]).name
    except (ValueError, KeyError, TypeError) as error:
        s += type(error).__name__


@sgc.function
def in_a_loop(s, q: str):
    found = []
    for _ in range(4):
        s += sgc.gen("a", max_tokens=9)
        if s["a"] in ("red", "blue", "1"):
            found.append(Mood(s["a"]).value)
    s += ",".join(found)


PROGRAMS = (by_value, handled, by_number, with_missing, by_name, out_of_json, in_a_loop)


@pytest.mark.parametrize("function", one_in(4, PROGRAMS), ids=lambda each: each.name)
def test_as_interpreted(function):
    agree(function, POOL, n=16, q="x")


def test_flags_are_refused():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        s += str(Bits(len(s["a"])))

    with pytest.raises(TraceError, match=r"test_enums.py:\d+"):
        program.compile()


def test_so_are_enumerations_of_many_members():
    many = Enum("many", {f"m{n}": f"{n}" for n in range(65)})

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        s += many(s["a"]).name

    with pytest.raises(TraceError, match="looked up among 65"):
        program.compile()
