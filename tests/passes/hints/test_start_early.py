"""Starting before a test what does not depend on it; and, in one block, all at once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests_support import asked, results
from waiting import BOUND_S

import sgc
from sgc.errors import ToolError
from sgc.passes.pipeline import optimize
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

SIGNED = 'signature="(x: str) -> str"'
HEAD = """
%s = stream "p"
%s1, %g = gen %s
%e: bool = compute "eq" [%g, "yes"]
"""
ARMS = """
branch %e then="yes" orelse="no"
^yes:
%y = const %s1 "y"
jump "end" args=[%y]
^no:
%z = const %s1 "n"
jump "end" args=[%z]
"""
END = f"{ARMS}^end(%t: stream):\n"


class Held:
    """Replies that wait until so many requests are under way at once."""

    def __init__(self, n: int) -> None:
        self.n, self.n_asked = n, 0
        self.backend = ScriptedBackend(lambda prompt, sampling: "yes")
        self.generate_at_once = self.backend.generate
        self.backend.generate = self.generate
        self.all_there: asyncio.Event | None = None

    async def generate(self, *args):
        self.all_there = self.all_there or asyncio.Event()
        self.n_asked += 1
        if self.n_asked == self.n:
            self.all_there.set()
        await asyncio.wait_for(self.all_there.wait(), BOUND_S)
        return await self.generate_at_once(*args)


@sgc.function
def about(s, topic):
    s += "Say something of " + topic + ": " + sgc.gen("said", max_tokens=8)


@sgc.function
def decides(s, topic):
    s += "Is it new? " + sgc.gen("new", max_tokens=4)
    if s["new"] == "yes":
        s += " It is."
    said = about(topic)
    s += said["said"]


def test_a_generation_runs_beside_the_test_before_it(scripted):
    graph = trace(decides)
    early = optimize(graph, names=("start_early",))
    assert early is not graph
    options = RunOptions(seed=3)
    runs = [
        sgc.Program(each).run_once({"topic": "tea"}, options, scripted()) for each in (graph, early)
    ]
    assert results(runs[0]) == results(runs[1])
    assert asked(runs[0]) == asked(runs[1])
    held = Held(2)  # each waits for the other: without the pass this would not end
    result = sgc.Program(early).run_once({"topic": "tea"}, options, Endpoint(held.backend))
    assert held.n_asked == result.stats.requests == 2


together = threading.Barrier(2, timeout=BOUND_S)


@sgc.tool(effect="pure")
def look_up(what: str) -> str:
    together.wait()  # passes only if two calls are under way at once
    return what.upper()


@sgc.function
def two_tools(s, x):
    first, second = look_up(x), look_up(x + "!")
    s += first + second + sgc.gen("g", max_tokens=4)


@sgc.function
def two_streams(s, x):
    one, two = about(x), about(x + "!")
    s += one["said"] + two["said"]


def test_in_one_block_calls_and_generations_overlap_by_themselves(scripted):
    program = two_tools.compile(check=False)
    result = program.run_once({"x": "a"}, RunOptions(), scripted())
    assert result.text().startswith("AA!")
    held = Held(2)
    two_streams.compile(check=False).run_once({"x": "a"}, RunOptions(), Endpoint(held.backend))
    assert held.n_asked == 2


def test_effects_do_not_overlap(scripted):
    barrier = threading.Barrier(2, timeout=0.2)

    @sgc.tool(effect="effect")
    def write(what: str) -> str:
        barrier.wait()
        return what

    @sgc.function
    def two_effects(s, x):
        write(x)
        write(x + "!")
        s += sgc.gen("g", max_tokens=4)

    with pytest.raises(ToolError, match="BrokenBarrier"):
        two_effects.compile(check=False).run_once({"x": "a"}, RunOptions(), scripted())
