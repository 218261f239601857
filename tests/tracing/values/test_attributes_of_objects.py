"""Attributes of objects whose class is known only at run time, by names that Python's types or the
tracer's own values have too.
"""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree

import sgc


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
