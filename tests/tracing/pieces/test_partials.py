"""Code that is given a `partial`, and sets of what is known only at run time in order."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import partial

import pytest
from control_flow import agree, agree_saved
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace

POOL = ("3", "12", "7", "0")


@dataclass(frozen=True)
class Note:
    text: str
    weight: int

    def rank(self, sign: int = 1, power: float = 1.0) -> float:
        return sign * self.weight**power


def test_a_partial_of_a_method_with_an_argument_is_a_key():
    @sgc.function
    def program(s, xs: list[str], power: float = 2.0):
        rank = partial(Note.rank, power=power)
        notes = []
        for x in xs:
            s += x + sgc.gen("n", regex="[0-9]+", max_tokens=3)
            notes.append(Note(x, int(s["n"])))
        best = heapq.nlargest(2, notes, key=rank)
        for note in best:
            s += f"{note.text}={note.weight} "

    graph = agree_saved(program, POOL, xs=["a", "b", "c", "d"])
    agree(program, POOL, graph=graph, xs=["a", "b"], power=0.0)


def test_what_a_partial_holds_may_not_change():
    @sgc.function
    def program(s, xs: list[str]):
        weights: dict[str, int] = {}
        rank = partial(lambda known, x: known.setdefault(x, len(known)), weights)
        s += "x" + sgc.gen("n", max_tokens=3)
        s += ",".join(heapq.nsmallest(2, [*xs, s["n"]], key=rank)) + f"{weights}"

    with pytest.raises(TraceError, match=r"test_partials\.py:\d+"):
        trace(program, is_full=True)


@pytest.mark.parametrize("is_reversed", one_in(2, [False, True]))
def test_a_loop_over_a_sorted_set_of_what_forks_gave(is_reversed: bool):
    @sgc.function
    def program(s, n: int = 3):
        forks = s.fork(n)
        for i, f in enumerate(forks):
            f += f"{i}" + sgc.gen("x", max_tokens=3)
        for text in sorted({f["x"] + "." for f in forks}, reverse=is_reversed):
            s += text + ("!" if text == "7." else "?")

    agree_saved(program, POOL, 4)
