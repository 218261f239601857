"""`x += y` of a value known only at run time: of a date, tuple or number it makes a new object.
Other names keep the old one. Nothing here relies on the trace check."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from control_flow import agree

import sgc

DIGITS = ["1", "7"]
Pair = namedtuple("Pair", "a b")


@dataclass(frozen=True)
class Amount:
    n: int

    def __add__(self, other):
        return Amount(self.n + other)


@dataclass
class Box:
    items: list

    def __iadd__(self, other):
        self.items.append(other)
        return self


def a_date(w):
    x = date.fromisoformat("2026-01-0" + w)
    old = x
    x += timedelta(days=1)
    return f"{old} {x}"


def a_time(w):
    x = datetime.fromisoformat("2026-01-0" + w)
    old = x
    x -= timedelta(hours=1)
    return f"{old} {x}"


def a_decimal(w):
    x = Decimal(w)
    old = x
    for n in (1, 2):
        x *= n + 1
    return f"{old} {x}"


def a_fraction(w):
    x = Fraction(w)
    old, seen = x, [x]
    x /= 3
    return f"{old} {x} {seen}"


def a_tuple(w):
    x = tuple(w.split(","))
    old = x
    x += ("z",)
    return f"{old} {x}"


def a_named_tuple(w):
    x = Pair(w, 1)
    old = x
    x += ("z",)
    return f"{old} {x}"


def a_number_of_json(w):
    x = json.loads(f'{{"n": {w}}}')["n"]
    old = x
    x += 1
    return f"{old} {x}"


def a_list_of_json(w):
    x = json.loads(f'{{"n": [{w}]}}')["n"]
    old = x
    x += [1]
    return f"{old} {x}"


def an_object(w):
    x = Amount(int(w))
    old = x
    x += 2
    return f"{old.n} {x.n}"


def an_object_that_changes(w):
    x = Box([w])
    old = x
    x += 2
    return f"{old.items} {x.items}"


def a_list(w):
    x = w.split(",")
    old = x
    x += ["z"]
    return f"{old} {x}"


KINDS = (
    a_date, a_time, a_decimal, a_fraction, a_tuple, a_named_tuple, a_number_of_json, a_list_of_json,
    an_object, an_object_that_changes, a_list,
)  # fmt: skip


@pytest.mark.parametrize("body", KINDS)
def test_other_names_keep_the_old_object_or_see_the_change(body):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("w")
        s += body(s["w"]) + sgc.gen("z")

    agree(program, DIGITS, q="a")


def later(day, n):
    day += timedelta(days=n)
    return day


def test_a_variable_of_the_caller():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("w")
        day = date.fromisoformat("2026-01-0" + s["w"])
        s += f"{day} {later(day, 2)} {day}" + sgc.gen("z")

    agree(program, DIGITS, q="a")


def test_places_that_hold_it():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("w")
        day = date.fromisoformat("2026-01-0" + s["w"])
        seen, kept = [day], {"first": day}
        while day.day < 12:
            s += f"{day}" + sgc.gen("k")
            day += timedelta(days=3 if s["k"] == "7" else 2)
            seen.append(day)
        s += f"{seen} {kept}" + sgc.gen("z")

    agree(program, DIGITS, q="a")
