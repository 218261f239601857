"""Defaults of fields, and attributes of classes, that are dates, decimals, tuples or members of an
enumeration. Nothing here relies on the trace check."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from control_flow import agree, agree_saved
from traced_at_once import live_at_once

import sgc
from sgc.errors import TraceError
from sgc.tracing import tracer
from sgc.tracing.tracer import trace

DIGITS = ("1", "4", "9")
RATE = "1.5"


class Currency(str, Enum):  # noqa: UP042 (programs have it)
    EUR = "e"
    USD = "u"


@dataclass
class Wallet:
    name: str
    spent: Decimal = Decimal("1.10")
    currency: Currency = Currency.EUR
    day: date = date(2020, 1, 2)
    at: datetime = datetime(2020, 1, 2, 3)
    step: timedelta = timedelta(days=1)
    part: Fraction = Fraction(1, 3)
    pair: tuple[Any, ...] = (1, Decimal(2), ("x", Currency.USD))
    tags: frozenset[int] = frozenset({3})
    most: float = float("inf")
    kept: Decimal = field(default=Decimal(7), repr=False, compare=False)
    fee: ClassVar[Decimal] = Decimal("0.50")
    kinds: ClassVar[tuple[Currency, ...]] = (Currency.EUR, Currency.USD)

    def charge(self, n: int) -> None:
        self.spent += n + self.fee
        self.day += self.step
        if n > 3:
            self.currency = self.kinds[1]


@dataclass
class Rated:
    rate: Decimal = Decimal(RATE)


RATE = "2.5"


@dataclass
class Hidden:
    Decimal: int = 1
    amount: Any = Decimal  # the field above


@dataclass
class Dated:
    date: Any = date(2020, 1, 1)
    end: Any = None


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


def test_objects_have_the_defaults_and_the_class_keeps_them():
    @sgc.function
    def program(s, q: str):
        first = Wallet(q)
        made = [first]
        for _ in range(3):
            s += q + sgc.gen("n", regex="[1-9]")
            first.charge(int(s["n"]))
            other = Wallet(s["n"], part=first.part + 1)
            made.append(other)
            s += f"{first} {first.currency.name} {other.kept} {first == other}"
            s += f"{other.pair[2][1].name}"
            s += f"{other.spent is Wallet(q).spent} {other.tags is Wallet(q).tags}"
        return [repr(each) for each in made]

    agree(program, DIGITS, q="x")


def test_a_default_is_what_it_was_when_the_class_was_made():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("n", regex="[1-9]")
        made = Rated()
        made.rate += int(s["n"])
        s += f"{made} {RATE}"

    agree(program, DIGITS, q="x")


def test_a_file_has_the_defaults():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("n", regex="[1-9]")
        made = Wallet(s["n"])
        made.charge(int(s["n"]))
        s += f"{made}"

    agree_saved(program, DIGITS, q="x")


@pytest.mark.parametrize("kind", [Hidden, Dated])
def test_a_field_with_the_name_of_a_type_is_refused_or_right(kind):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("n", regex="[1-9]")
        made = kind()
        made.end = s["n"]
        s += f"{made}"

    try:
        graph = trace(program, is_full=True)
    except TraceError as refused:
        assert "is an attribute of" in str(refused) or "is not data" in str(refused)  # noqa: PT017
        return
    agree(program, DIGITS, graph=graph, q="x")
