"""Classes with `total_ordering` in orders, sets and dicts.

Nothing here relies on the trace check.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import total_ordering

import pytest
from control_flow import agree, agree_saved
from traced_at_once import live_at_once

import sgc
from sgc.errors import TraceError
from sgc.tracing import tracer
from sgc.tracing.tracer import trace

REPLIES = ("easy", "good", "hard", "again")


@total_ordering
class Grade:
    names = ("again", "hard", "good", "easy")

    def __init__(self, name):
        self.value = self.names.index(name)

    def __eq__(self, other):
        return isinstance(other, Grade) and self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"G{self.value}"


@functools.total_ordering
@dataclass(frozen=True)
class Size:
    n: int

    def __ge__(self, other):
        if not isinstance(other, Size):
            return NotImplemented
        return self.n >= other.n


@total_ordering
class Odd:
    """Its order is no order, and its comparisons are no bools."""

    def __init__(self, n):
        self.n = n

    def __le__(self, other):
        return [self.n] if self.n < 3 else []

    def __eq__(self, other):
        return self.n == getattr(other, "n", None)

    __hash__ = None  # type: ignore[assignment]


HARD = Grade("hard")
ORDERS = ("<", "<=", ">", ">=", "==", "!=")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


@sgc.function
def graded(s, q: str):
    given, seen = [], {}
    for _ in range(4):
        s += q + sgc.select("g", choices=list(REPLIES))
        grade = Grade(s["g"])
        if grade >= HARD:
            s += "fine"
        seen[grade] = seen.get(grade, 0) + 1
        given.append(grade)
    best = max(given)
    s += f"{best} {min(given)} {sorted(given, reverse=True)} {seen} {len({*given})}"
    s += f"{[x > HARD for x in given]} {[HARD >= x for x in given]}"  # noqa: SIM300
    s += f"{given[0] != best} {best in given}"
    given.sort()
    return [repr(x) for x in given]


@sgc.function
def sized(s, q: str):
    made = []
    for _ in range(3):
        s += q + sgc.gen("n", regex="[1-9]")
        made.append(Size(int(s["n"])))
    a, b = made[0], made[1]
    s += f"{a < b} {a <= b} {a > b} {a >= b} {a == b} {sorted(made)} {max(made)} {len(set(made))}"
    try:
        s += f"{a > s['n']}"
    except TypeError as error:
        s += str(error)


@sgc.function
def odd(s, q: str):
    s += q + sgc.gen("n", regex="[1-9]")
    a, b = Odd(int(s["n"])), Odd(3)
    s += f"{a < b} {a <= b} {a > b} {a >= b} {b < a} {b > a}"


@pytest.mark.parametrize("program", [graded, sized, odd], ids=lambda each: each.name)
def test_they_are_ordered_as_in_python(program):
    agree(program, (*REPLIES, "1", "3", "8"), q="x")


def test_a_file_has_the_order():
    agree_saved(graded, REPLIES, q="x")


def other_ordering(kind):
    return total_ordering(kind)


@other_ordering
class Hidden:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n


class Base:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n


@total_ordering
class Inherits(Base):
    pass


@total_ordering
class Replaced(Base):
    def __lt__(self, other):
        return self.n > other.n


Replaced.__gt__ = lambda self, other: True  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("kind", [Hidden, Inherits, Replaced])
def test_other_ways_to_make_an_order_are_refused(kind):
    @sgc.function
    def program(s, q: str):
        made = []
        for _ in range(2):
            s += q + sgc.gen("n", regex="[1-9]")
            made.append(kind(s["n"]))
        s += f"{max(made).n}"

    with pytest.raises(TraceError):
        trace(program, is_full=True)
