"""Starting before a test what does not depend on it; and, in one block, all at once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pass_cases import check_case
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
CASES = {
    "a stream of its own, and the pure call that it needs": (
        f"""{HEAD}{END}
        %c: text = tool "m:f" [%x] effect="pure" {SIGNED}
        %q = stream "q" path="p/q.0"
        %q1 = append %q %c
        %q2, %h = gen %q1
        %t1 = append %t %h
        return %h
        """,
        f"""{HEAD}
        %c: text = tool "m:f" [%x] effect="pure" {SIGNED}
        %q = stream "q" path="p/q.0"
        %q1 = append %q %c
        %q2, %h = gen %q1
        {END}
        %t1 = append %t %h
        return %h
        """,
    ),
    "refused: a tool that is called again after a crash": (
        f"""{HEAD}{END}
        %c: text = tool "m:f" [%x] effect="idempotent" {SIGNED}
        %q = stream "q" path="p/q.0"
        %q1 = append %q %c
        %q2, %h = gen %q1
        return %h
        """,
        None,
    ),
    "refused: a stream that would begin before an arm's fork": (
        f"""{HEAD}
        branch %e then="yes" orelse="no"
        ^yes:
        %y, %k = fork %s1 1
        jump "end" args=[%y]
        ^no:
        %z = const %s1 "n"
        jump "end" args=[%z]
        ^end(%t: stream):
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        return %h
        """,
        None,
    ),
    "refused: behind a loop whose bound may end the run": (
        f"""{HEAD}
        jump "turn" args=[%s1]
        ^turn(%t: stream):
        %t1, %a = gen %t
        %c: bool = compute "eq" [%a, "x"]
        branch %c then="back" orelse="end"
        ^back:
        jump "turn" args=[%t1] bound=3
        ^end:
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        return %h
        """,
        None,
    ),
    "refused: behind a switch that knows no other text": (
        f"""{HEAD}
        switch %g cases=["a", "b"] targets=["yes", "no"]
        ^yes:
        jump "end"
        ^no:
        jump "end"
        ^end:
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        return %h
        """,
        None,
    ),
    "refused: within a loop": (
        f"""{HEAD}
        jump "turn" args=[%g]
        ^turn(%v: text):
        %c: bool = compute "eq" [%v, "x"]
        branch %c then="yes" orelse="no"
        ^yes:
        jump "on"
        ^no:
        jump "on"
        ^on:
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        switch %h cases=["a", "b"] targets=["back", "one"] default="two"
        ^back:
        jump "turn" args=[%h]
        ^one:
        return %h
        ^two:
        return %v
        """,
        None,
    ),
    "when something ends is a fact of where it stands": (
        f"""{HEAD}{END}
        %w: bool = ended %s1 %e
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        return [%w, %h]
        """,
        f"""{HEAD}
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        {END}
        %w: bool = ended %s1 %e
        return [%w, %h]
        """,
    ),
    "refused: what depends on the arms": (
        f"""{HEAD}{END}
        %t1, %h = gen %t
        return %h
        """,
        None,
    ),
    "refused: an arm that ends the run": (
        f"""{HEAD}
        branch %e then="yes" orelse="no"
        ^yes:
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        return %h
        ^no:
        fail "ValueError" "no"
        """,
        None,
    ),
    "refused: streams that would begin in another order": (
        f"""{HEAD}
        branch %e then="yes" orelse="no"
        ^yes:
        %r = stream "r" path="p/r.0"
        publish %r "r"
        jump "end"
        ^no:
        jump "end"
        ^end:
        %q = stream "q" path="p/q.0"
        %q2, %h = gen %q
        return %h
        """,
        None,
    ),
    "refused: effects, and a pure call past one, as logs count them": (
        f"""{HEAD}{END}
        %c: text = tool "m:f" [%x] effect="effect" {SIGNED}
        %d: text = tool "m:g" [%x] effect="pure" {SIGNED}
        return %d
        """,
        None,
    ),
    "refused: a loop stays as it is": (
        f"""{HEAD}
        jump "turn" args=[0]
        ^turn(%i: int):
        %q = stream "q" caller=%s
        %q2, %h = gen %q
        %j: int = compute "add" [%i, 1]
        %l: bool = compute "lt" [%j, 3]
        branch %l then="back" orelse="end"
        ^back:
        jump "turn" args=[%j]
        ^end:
        return none
        """,
        None,
    ),
    "refused: nothing would ask earlier": (
        f"""{HEAD}{END}
        %u = concat parts=[%x, %g]
        return %u
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_start_early(case):
    check_case("start_early", *CASES[case])


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
