"""What a run can cost at most: the dearest way, loops by their bounds."""

from __future__ import annotations

import math

import sgc
from sgc.ir.analysis.ceiling import ceiling
from sgc.tracing.tracer import trace


def test_the_dearest_way_counts():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=5)
        if s["x"] == "a":
            s += sgc.gen("y", max_tokens=7) + sgc.gen("z", max_tokens=11)
        else:
            group = s.fork(3)
            group += sgc.gen("part", max_tokens=4)
            group.join()

    found = ceiling(trace(program))
    assert (found.requests, found.tokens, found.ways) == (1 + 4, 5 + 18, 2)


def test_a_loop_counts_as_often_as_its_bound():
    @sgc.function
    def program(s, q: str):
        for turn in sgc.turns(6):
            s += f"{turn}" + sgc.gen("x", max_tokens=3)
            for again in sgc.turns(2):
                s += f"{again}" + sgc.gen("y")
            if s["x"] == "done":
                break

    found = ceiling(trace(program))
    assert found.requests == 6 * (1 + 2)
    assert found.tokens == 18
    assert found.n_unlimited >= 1
    assert found.loops == 1


def test_a_loop_without_a_bound_has_no_ceiling_and_max_turns_gives_one():
    def program(s):
        while True:
            s += "?" + sgc.gen("x", max_tokens=3)
            if s["x"] == "done":
                break

    assert ceiling(trace(sgc.function(program))).requests == math.inf
    bounded = ceiling(trace(sgc.function(program, max_turns=9)))
    assert 10 <= bounded.requests <= 11
