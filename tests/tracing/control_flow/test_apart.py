"""Where a budget is spent, the error names the variable that kept the paths of a loop apart."""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

import pytest
from control_flow import outcome, replying

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

SMALL = Budget(work=30_000)


def told(program: Any) -> str:
    with pytest.raises(
        TraceError, match=f"has more than {SMALL.work} steps of tracing: "
    ) as stopped:
        trace(program, is_full=True, budget=SMALL)
    assert stopped.value.where
    return stopped.value.message.partition(": ")[2]


def test_a_list_of_what_a_graph_cannot_hold():
    @sgc.function
    def program(s, words: list[str]):
        acts = []
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            acts.append((len(acts), lambda: 1))
        s += f"{len(acts)}"

    found = told(program)
    assert "test_apart.py:" in found
    assert "since acts is a list of " in found
    assert "a graph's list cannot hold a function" in found or "cannot hold 0" in found


def test_a_tuple_that_grows():
    @sgc.function
    def program(s, words: list[str]):
        found = ()
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            found += (s["x"],)
        return found

    said = told(program)
    assert "since found is a tuple of " in said
    assert said.endswith("; a list may grow, a tuple not")


def test_objects_that_two_variables_share():
    class Note:
        __slots__ = ("text",)

        def __init__(self, text):
            self.text = text

    @sgc.function
    def program(s, words: list[str]):
        notes, last = [], Note("")
        for word in words:
            s += word + last.text + sgc.gen("x", max_tokens=4)
            last = Note(s["x"])
            notes.append(last)
        s += notes[-1].text if notes else ""

    found = told(program)
    assert "since notes is a list of " in found


def test_a_value_that_no_graph_has():
    @sgc.function
    def program(s, words: list[str]):
        data = b""
        for word in words:
            data += b"x"
            s += word + sgc.gen("x", max_tokens=4)
        s += f"{len(data)}"

    found = told(program)
    assert "since data, b'xxx" in found


@pytest.mark.slow
def test_calls_that_nest_without_end():
    def ask(s, n):
        s += sgc.gen("x", max_tokens=4)
        return ask(s, n - 1) if n > 0 else n

    @sgc.function
    def program(s, n: int):
        s += f"{ask(s, n)}"

    assert "calls nest ever deeper: ask is called by what it calls" in told(program)


def test_calls_whose_depth_is_an_argument_take_its_value():
    def ask(s, n):
        s += sgc.gen("x", max_tokens=4)
        if n > 0 and s["x"] != "no":
            return ask(s, n - 1) + "!"
        return s["x"]

    @sgc.function
    def program(s, q: str, n: int, m: int = 1):
        s += q + ask(s, n) + f"{m}"

    with pytest.raises(TraceError, match="calls nest ever deeper") as stopped:
        trace(program, is_full=True, budget=SMALL)
    assert stopped.value.needs == {"n"}
    for n in (0, 2):
        graph = trace(program, {"n": n}, is_full=True, budget=SMALL)
        assert [each.value.name for each in graph.params] == ["q", "m"]
        for seed in range(6):
            options, endpoint = RunOptions(seed=seed), partial(replying, seed, ["no", "yes", "a"])
            given = {"q": "x", "m": 3}
            wanted = outcome(partial(program.run_once, given | {"n": n}, options, endpoint()))
            found = outcome(partial(Program(graph).run_once, given, options, endpoint()))
            assert found == wanted


def test_a_function_that_python_calls():
    @sgc.function
    def program(s, q: str):
        def told(n, word):
            for part in word.split():
                s.__iadd__(part + sgc.gen("x", max_tokens=4))
                n = n + 1
            return n

        s += q + sgc.gen("x", max_tokens=4)
        s += f"{functools.reduce(told, [s['x'], 'a'], 0)}"

    assert "values that tracing does not see" in told(program)
