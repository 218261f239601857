"""Compiling: what it takes in, what it costs, and who may look on."""

from __future__ import annotations

import functools

from tests_support import run_both

import sgc
from sgc.errors import TraceError
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.tracing import tracer
from sgc.tracing.paths.exploration import Report
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


@sgc.function
def nests(s, q: str):
    tree: list = [q]
    while True:
        s += str(tree) + sgc.gen("x")
        if s["x"] == "stop":
            break
        tree = [tree, s["x"]]


def test_a_call_is_traced_with_less_work(monkeypatch):
    monkeypatch.setattr(tracer, "_of_live_or_error", lambda *_: TraceError("not tried"))
    monkeypatch.setattr(tracer, "WORK_ALONE", 1_000)
    monkeypatch.setattr(tracer, "WORK_OF_CALL", 4_000)
    called, compiled = Report(), Report()
    trace(nests, is_strict=True, report=called)
    trace(nests, report=compiled)
    assert called.deopt == "more than 2000 steps of tracing"
    assert compiled.deopt == ""
