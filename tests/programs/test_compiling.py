"""Compiling: what it takes in, what it costs, and who may look on."""

from __future__ import annotations

import functools

from tests_support import run_both

import sgc
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.tracing.tracer import trace


def test_a_decorator_below_is_part_of_the_program(scripted):
    def prefixed(function):
        @functools.wraps(function)
        def wrapper(s, x):
            s += "PREFIX "
            return function(s, x)

        return wrapper

    @sgc.function
    @prefixed
    def program(s, x):
        s += x

    assert run_both(program, scripted(), x="hi").text() == "PREFIX hi"


def test_compiling_costs_linear_work(scripted):
    """Counted, not timed: nodes of a program with many forks, and of its published names."""

    def nodes(n: int) -> int:
        @sgc.function
        def program(s, x):
            for _ in range(n):
                group = s.fork(2)
                group += x
                for child in group:
                    child["v"] = "w"
                group.join()

        return trace(program).n_nodes

    assert nodes(40) < 2.2 * nodes(20)


def test_compiling_under_a_profiler():
    import cProfile

    @sgc.function
    def program(s, x):
        s += x

    profile = cProfile.Profile()
    profile.enable()
    try:
        graph = program.compile().graph
    finally:
        profile.disable()
    assert parse(to_text(graph)) == graph
