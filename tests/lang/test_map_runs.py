"""Runs of mapped programs: how wide, what fails, what a log has."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from control_flow import replying
from lang.map_programs import TEXTS, agree, counts, deciding, find, keep, lists, note, read
from waiting import BOUND_S, settle

import sgc
from sgc.errors import ProgramRaised, SgcError, UnknownVariable
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

# -- width ----------------------------------------------------------------------------------


class Counting(ScriptedBackend):
    """Counts the requests in flight; the first wait until there are as many as `width`, and
    each takes a few turns of the loop.
    """

    def __init__(self, width: int = 1) -> None:
        super().__init__(lambda prompt, sampling: "reply")
        self.now = self.most = self.n = 0
        self._width, self._reached = width, asyncio.Event()

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        self.n += 1
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now >= self._width:
            self._reached.set()
        try:
            await asyncio.wait_for(self._reached.wait(), BOUND_S)
            await settle()
            return await super().generate(*args, **kwargs)
        finally:
            self.now -= 1


@sgc.function
def narrow(s, xs: list[str]):
    s += sgc.join("", sgc.map(note, xs, width=3)["note"])


@sgc.function
def narrow_in_place(s):
    sgc.map(note, list("abcdefgh"), width=3)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize(
    ("function", "arguments"), [(narrow, {"xs": list("abcdefgh")}), (narrow_in_place, {})]
)
def test_the_width_is_reached_and_never_exceeded(function, arguments, is_compiled):
    backend = Counting(width=3)
    program = function.compile() if is_compiled else function
    program.run_once(arguments, RunOptions(seed=1), Endpoint(backend))
    assert (backend.most, backend.n) == (3, 8)


# -- failing --------------------------------------------------------------------------------


@sgc.function
def adds(s, xs: list[str]):
    total = 0
    for n in sgc.map(counts, xs).returns:
        total = total + n
    s += f"{total}" + sgc.gen("end")


def test_the_error_is_that_of_the_first_call_in_order():
    agree(adds, *lists(), *lists(), *lists())
    with pytest.raises(ValueError, match="invalid literal"):
        adds.run_once({"xs": ["a"]}, RunOptions(seed=1), replying(1, ["no"]))


class Failing(ScriptedBackend):
    """Fails for one item; for those after it, waits until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(lambda prompt, sampling: "reply")
        self.cancelled: list[str] = []
        self.is_slow = asyncio.Event()

    async def generate(self, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        text = "".join(segment.text for segment in prompt)
        if "bad" in text:
            await asyncio.wait_for(self.is_slow.wait(), BOUND_S)
            raise SgcError("the backend failed")
        if "slow" in text:
            self.is_slow.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.append(text)
        return await super().generate(prompt, *args, **kwargs)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_failing_call_stops_those_after_it(is_compiled):
    backend = Failing()
    program = narrow.compile() if is_compiled else narrow
    with pytest.raises(SgcError, match="the backend failed"):
        program.run_once(
            {"xs": ["fine", "bad", "slow", "never"]}, RunOptions(seed=1), Endpoint(backend)
        )
    assert backend.cancelled == ["[plain] slow: "]


@sgc.function
def sometimes(s, x):
    s += x + sgc.gen("a", max_tokens=3)
    if s["a"] == "go":
        s["found"] = "it"


@sgc.function
def asks(s, xs: list[str]):
    states = sgc.map(sometimes, xs)
    s += sgc.join("", states["a"]) + sgc.gen("b")
    if s["b"] != "stop":
        s += sgc.join("", states["found"])


def test_a_name_that_a_call_has_not_set():
    agree(asks, *lists(), *lists(), *lists())
    with pytest.raises(UnknownVariable):
        asks.compile().run_once({"xs": ["a"]}, RunOptions(seed=1), replying(1, ["no"]))


@sgc.function
def never(s, x: str):
    s += x + sgc.gen("a")


@sgc.function
def asks_for_none(s, xs: list[str]):
    s += sgc.join("", sgc.map(never, xs)["found"]) + sgc.gen("b")


def test_a_name_that_no_call_sets_is_asked_of_no_calls():
    program, endpoint, options = asks_for_none.compile(), replying(1, ["no"]), RunOptions(seed=1)
    for each in (program, asks_for_none):
        assert each.run_once({"xs": []}, options, endpoint).text() == "no"
        with pytest.raises((UnknownVariable, ProgramRaised), match="found"):
            each.run_once({"xs": ["a"]}, options, endpoint)


# -- logs -----------------------------------------------------------------------------------


@sgc.function
def logged(s, xs: list[str]):
    s += sgc.join(",", sgc.map(read, find("q"), width=2)["said"])
    s += sgc.join(",", sgc.map(deciding, xs, n=2)["first"]) + keep("end") + sgc.gen("end")


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_cut_log_is_gone_on_with(tmp_path, is_compiled):
    tools = sgc.lang.tools.resolve_tools([find, keep])
    ways = [logged, logged.compile()]

    def run(way: Any, log: Any, texts: list[str]) -> Any:
        with sgc.RunLog.open(log, on_unknown="retry") as found:
            options = RunOptions(seed=3, allow_tools=tools, log=found)
            return way.run_once({"xs": ["a", "b", "c"]}, options, replying(1, texts))

    whole = tmp_path / "whole.log"
    wanted = run(ways[is_compiled], whole, TEXTS)
    lines = whole.read_bytes().splitlines(keepends=True)
    for n in range(4, len(lines) + 1, 5):
        part = tmp_path / f"{n}.log"
        part.write_bytes(b"".join(lines[:n]))
        found = run(ways[not is_compiled], part, TEXTS)
        assert [s.text for s in found.streams] == [s.text for s in wanted.streams], n
    assert run(ways[0], whole, []).stats.logged_requests == wanted.stats.requests


@sgc.function
def endless(s, x):
    s += x + sgc.gen("a")
    nested = (x,)
    while s["a"] != "stop":
        nested = (nested, x)
        s += nested[1] + sgc.gen("a")


@sgc.function
def ends(s, xs: list[str]):
    s += sgc.join(",", sgc.map(endless, xs)["a"])


def test_what_was_not_compiled_goes_on_in_the_interpreter():
    program = Program(trace(ends, budget=Budget(nodes=60)))
    assert [may_deopt(graph) for graph in (program.graph, *program.graph.called)] == [True, True]
    arguments, endpoint = {"xs": ["a", "b", "c"]}, replying(2, ["go", "stop"])
    options = RunOptions(seed=2)
    wanted = ends.run_once(arguments, options, endpoint)
    interpreted = []

    def interpret(chosen: RunOptions) -> Any:
        interpreted.append(ends.run_once(arguments, chosen, endpoint))
        return interpreted[-1]

    found = run_with_deopt(program, endpoint.backend, arguments, options, interpret)
    assert (found.text(), len(interpreted)) == (wanted.text(), 1)
    assert found.stats.logged_requests > 0
