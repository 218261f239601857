"""Paths merge inside functions that no name at the call names: out of a table, a partial, another
attribute. A call by Python's own code is none of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.ir.graph import Graph
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

REPLIES = ["yes", "no", "a b", "", "b c d"]
SMALL = Budget(nodes=300, work=200_000)  # a loop that is not closed takes more


def count_long(words: list[str], limit: int = 1) -> int:
    n = 0
    for word in words:
        if len(word) > limit:
            n += 1
    return n


def joined(words: list[str], limit: int = 1) -> int:
    kept = 0
    for word in words:
        if word != "a":
            kept += 2
    return kept


count_longer = partial(count_long, limit=0)
WAYS: dict[str, Callable[..., int]] = {"long": count_long, "joined": joined, "part": count_longer}


@dataclass
class Judge:
    way: Callable[..., int]
    seen: list[int] = field(default_factory=list)

    def ask(self, words: list[str]) -> int:
        n = self.way(words)
        self.seen.append(n)
        return n


@sgc.function
def tell(s: Any, words: list[str], end: str) -> Any:
    for word in words:
        s += word + sgc.gen("x", max_tokens=4)
    return end + s["x"] if words else end


def closed(program: Any) -> Graph:
    graph = trace(program, is_full=True, budget=SMALL)
    agree(program, REPLIES, graph=graph, n=24, q="x")
    return graph


def test_a_partial_of_the_module():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        s += f"{count_longer(s['x'].split())}" + sgc.gen("z", max_tokens=9)

    closed(program)


def test_a_partial_of_a_program():
    told = partial(tell, end="!")

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        s += told(s["x"].split()).ret_value

    closed(program)


@pytest.mark.parametrize("way", one_in(3, sorted(WAYS)))
def test_functions_of_a_table(way: str):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        n = WAYS[way](s["x"].split())
        s += f"{n}" + sgc.gen("z", max_tokens=9)

    closed(program)


def test_a_function_in_an_attribute():
    @sgc.function
    def program(s, q: str):
        judge = Judge(joined)
        for _ in range(2):
            s += q + sgc.gen("x", max_tokens=9)
            s += f"{judge.ask(s['x'].split())}"
        s += f"{judge.seen}" + sgc.gen("z", max_tokens=9)

    closed(program)


def test_which_function_is_called_differs_between_paths():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        way = "long" if "b" in s["x"] else "joined"
        n = WAYS[way](s["x"].split())
        s += f"{n} {way}" + sgc.gen("z", max_tokens=9)

    closed(program)


def test_a_closure_out_of_a_list_keeps_its_cells():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        total = 0

        def add(words):
            nonlocal total
            for word in words:
                total += 1 if word != "a" else 10

        acts = [add, add]
        acts[1](s["x"].split())
        acts[0](s["x"].split())
        s += f"{total}" + sgc.gen("z", max_tokens=9)

    closed(program)


def test_a_key_that_is_called_for_other_items_too_is_no_call_of_the_frame():
    """`max` holds the best item so far, which no frame shows."""

    def points(word):
        n = 0
        if word.startswith("b"):
            n += 2
        if word.endswith("s"):
            n += 1
        return n

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9) + sgc.gen("y", max_tokens=9)
        first = [points][0](s["x"])
        best = max([s["y"], s["x"], "bus"][first % 2 :], key=[points][0])
        s += best + sgc.gen("z", max_tokens=9)

    agree(program, ["b", "bs", "s", "a"], n=24, q="x")


def test_the_operator_before_is_not_taken_for_the_call():
    """The function is looked at last for an argument, then called by `map`."""

    def doubled(word):
        if word == "a":
            return "aa"
        return word + "."

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9) + sgc.gen("y", max_tokens=9)
        table = {"d": doubled}
        found = sorted([table["d"](s["x"]), s["y"]], key=table["d"])
        s += "-".join(found) + sgc.gen("z", max_tokens=9)

    agree(program, ["a", "b", "c"], n=24, q="x")
