"""Attributes of objects whose class is known only at run time, by names that Python's types or the
tracer's own values have too.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError


class Order:
    def __init__(self, first: list[str]) -> None:
        self.items = [*first]
        self.n = 0
        self.title, self.symbol, self.session, self.count = "T", "S", "N", 3

    def list(self) -> list[str]:
        return self.items

    def length(self) -> int:
        return len(self.items)

    @property
    def shown(self) -> str:
        return "/".join(self.items)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "read",
    [
        lambda order: str(order.items),
        lambda order: order.title,
        lambda order: order.symbol + order.session,
        lambda order: str(order.count + 1),
        lambda order: str(order.length()),
        lambda order: order.shown,
        lambda order: ", ".join(order.list()),
        lambda order: "".join(each for each in order.items),
    ],
)
def test_they_are_the_objects_own(read: Any) -> None:
    def program(s, q: str, turns: int):
        held = [Order([]), "w"]  # of two types, so that what is read of it is of any
        for _ in range(turns):
            s += "?" + sgc.gen("a", max_tokens=4)
            held[0].list().append(s["a"])
        s += q + read(held[0])
        if s["a"] == "yes":
            s += "!"
        return held[0].n

    agree(sgc.function(program, max_turns=9), ("yes", "no"), q="x", turns=2)


class Count:
    def __init__(self, name: str, count: int = 0) -> None:
        self.name, self.count = name, count


def _counted(add: Any) -> Any:
    """A program that keeps objects in a dict, and changes one of them."""

    def program(s, q: str):
        found: dict[str, Count] = {}
        for _ in range(3):
            s += q + sgc.gen("a", max_tokens=4)
            if s["a"] not in found:
                found[s["a"]] = Count(s["a"])
            add(s, found[s["a"]])
        return [(each.name, each.count) for each in found.values()]

    return sgc.function(program)


def _add_to_count(s: Any, each: Count) -> None:
    each.count += 1


def _read_by_getter(s: Any, each: Count) -> None:
    get = attrgetter("count")
    if get(each):
        s += "again"


def _read_parts(s: Any, each: Count) -> None:
    get = attrgetter("name", "count")
    name, n = get(each)
    s += f"{name} {n}"


@pytest.mark.parametrize(
    "add", [_add_to_count, pytest.param(_read_by_getter, marks=pytest.mark.slow), _read_parts]
)
def test_they_are_its_own_where_a_line_changes_or_a_getter_reads_them(add: Any) -> None:
    # A method of Python's lists has the name, too; comparing runs would find only some of it.
    told = ""
    try:
        agree(_counted(add), ("yes", "no"), q="x")
    except TraceError as refused:
        told = str(refused)
    assert "the trace of" not in told
