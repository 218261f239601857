"""Ceilings: what any run may use, and what none does."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from random_control import Generator
from random_control_runs import ARGUMENTS, BUDGET, load

import sgc
from sgc.errors import SgcError, TraceError, UnknownVariable, UsageError
from sgc.ir.text.parser import parse
from sgc.lang.tools import resolve_tools, tools_in
from sgc.predict.bounds.ceiling import ceiling_for_any, ceiling_of
from sgc.predict.bounds.cost import Cost
from sgc.predict.bounds.lengths import Bound, computed, known
from sgc.predict.bounds.requests import EngineAsking
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.checking.scripted_replies import obeying
from sgc.tracing.tracer import trace

POOL = ("yes", "no", "7", " a b", "Yes!", "x,y", "")


def most(function: Function, tool_tokens: float = math.inf, **arguments: Any) -> Cost:
    graph = function.compile(opt_level=0, check=False).graph
    asking = EngineAsking(CAPABILITIES, n_first=0)
    return ceiling_of(graph, arguments, asking, RunOptions(), tool_tokens)


def test_a_prompt_counts_its_bytes_and_what_was_generated_its_tokens() -> None:
    @sgc.function
    def program(s, x: str):
        s += "ab" + x
        s += sgc.gen("one", max_tokens=5)
        s += "c" + s["one"] + sgc.gen("two", max_tokens=7)

    assert most(program, x="é") == Cost(2, 4 + (4 + 5 + 1 + 5), 12)


def test_of_two_ways_the_dearer_counts_and_a_known_one_alone() -> None:
    @sgc.function
    def program(s, kind: str):
        s += "x" + sgc.gen("a", max_tokens=3)
        if kind == "short" or s["a"] == "no":
            s += sgc.gen("b", max_tokens=10)
        else:
            s += "yy" + sgc.gen("b", max_tokens=100)

    assert most(program, kind="short") == Cost(2, 1 + 4, 13)
    assert most(program, kind="long") == Cost(2, 1 + 6, 103)


def test_a_loop_grows_turn_by_turn_up_to_its_bound() -> None:
    @sgc.function
    def program(s):
        for _ in sgc.turns(3):
            s += "a" + sgc.gen("x", max_tokens=2)
            if "end" in s["x"]:
                break
        s += "b" + sgc.gen("y", max_tokens=1)

    assert most(program) == Cost(4, 1 + 4 + 7 + 10, 7)


def test_a_loop_over_an_argument_is_as_long_as_that() -> None:
    @sgc.function
    def program(s, parts: list[str]):
        for part in parts:
            s += part + sgc.gen("x", max_tokens=2)

    assert most(program, parts=["a", "bb"]) == Cost(2, 1 + 5, 4)


def test_what_has_no_bound_is_named() -> None:
    @sgc.tool(effect="pure")
    def look(x: str) -> str:
        return x

    @sgc.function
    def with_tool(s):
        s += "a" + sgc.gen("x", max_tokens=2)
        s += look(s["x"]) + sgc.gen("y", max_tokens=2)

    found = most(with_tool)
    assert (found.requests, found.completion_tokens) == (2, 4)
    assert math.isinf(found.prompt_tokens)
    assert "look" in found.why
    assert most(with_tool, tool_tokens=10).prompt_tokens == 1 + 13

    @sgc.function
    def endless(s):
        s += "a"
        while True:
            s += sgc.gen("x", max_tokens=2)
            if "end" in s["x"]:
                break

    found = most(endless)
    assert math.isinf(found.requests)
    assert "bound" in found.why or "interpreter" in found.why


def test_a_map_costs_what_its_items_do() -> None:
    @sgc.function
    def part(s, x: str):
        s += "p" + x + sgc.gen("y", max_tokens=4)
        return s["y"]

    @sgc.function
    def whole(s, xs: list[str]):
        found = sgc.map(part, xs)
        s += sgc.join(",", found.returns) + sgc.gen("z", max_tokens=1)

    found = most(whole, xs=["a", "bbb"])
    assert (found.requests, found.completion_tokens) == (3, 9)
    assert 2 + 4 + 4 + 1 + 4 <= found.prompt_tokens < 40


def test_a_select_among_a_list_costs_what_its_choices_do() -> None:
    @sgc.function
    def listed(s, labels: list[str]):
        s += "Which? " + sgc.select("label", choices=labels)

    @sgc.function
    def written(s):
        s += "Which? " + sgc.select("label", choices=["a", "bcd"])

    assert most(listed, labels=["a", "bcd"]) == most(written)
    of_any = ceiling_for_any(trace(listed))
    assert (of_any.requests, math.isinf(of_any.prompt_tokens)) == (1, True)


def test_a_select_among_what_is_no_list_ends_the_run() -> None:
    """A file may say so; the run fails before it asks."""
    text = 'sgir 1\nprogram @p(%x: json) {\n  %s = stream "p"\n  %t, %c = select %s among=%x\n}'
    graph = parse(text.replace("\n}", "\n  return %c\n}\n"))
    asking = EngineAsking(CAPABILITIES, n_first=0)
    assert ceiling_of(graph, {"x": 3}, asking, RunOptions(), 0).requests == 0


def test_max_tokens_that_a_reply_decides_are_refused() -> None:
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("n", regex="[1-9]", max_tokens=1)
        s += sgc.gen("x", max_tokens=int(s["n"]))

    with pytest.raises(UsageError, match="max_tokens is decided by a generated text"):
        most(program)


def test_a_program_that_fails_has_asked_before() -> None:
    """A loop that is only left by an error at its bound."""
    graph = parse("""sgir 1
program @p() {
  %s = stream "p"
  jump "b" args=[%s, 1]
^b(%t: stream, %i: int):
  %a, %y = gen %t max_tokens=2
  %j: int = compute "add" [%i, 1]
  %l: bool = compute "lt" [%j, 4]
  branch %l then="again" orelse="over"
^again:
  jump "b" args=[%a, %j]
^over:
  fail "TurnsExceeded" "a loop goes on beyond max_turns=3"
}
""")
    asking = EngineAsking(CAPABILITIES, n_first=0)
    assert ceiling_of(graph, {}, asking, RunOptions(), 0).requests == 3


@pytest.mark.slow
def test_loops_that_take_too_long_to_follow_have_a_bound_and_go_on() -> None:
    """What a block after them uses may be of a path that was not followed."""

    @sgc.function
    def program(s, parts: list[str]):
        for part in parts:
            s += part + sgc.gen("x", max_tokens=2)
            while len(s["x"]) > 3:
                s += sgc.gen("x", max_tokens=2)
        s += s["x"] + sgc.gen("y", max_tokens=1)

    parts = ["a"] * 20_000
    found = most(program, parts=parts)
    assert math.isinf(found.requests)
    assert "loop" in found.why

    @sgc.function
    def counted(s, parts: list[str]):
        for part in parts:
            s += part + sgc.gen("x", max_tokens=2)

    assert most(counted, parts=parts).completion_tokens == 40_000


def test_several_generations_of_one_prompt_count_each() -> None:
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("x", n=3, max_tokens=2)

    assert most(program).completion_tokens == 6


def test_nothing_times_anything_is_nothing() -> None:
    endless = Bound(math.inf, why="p.py:1: long")
    assert computed("replace", [endless, known("a"), known("")], "p.py:1").tokens == math.inf
    assert computed("repeat", [known(""), Bound(3)], "p.py:1").tokens == 0.0


@pytest.mark.parametrize(
    ("fn", "args", "tokens"),
    [
        ("strip", [Bound(8)], 8),
        ("upper", [known("ab")], 2),
        ("upper", [Bound(2)], 2 * 16 * 3),
        ("repeat", [Bound(8), known(3)], 24),
        ("join", [known(", "), Bound(10, length=4)], 18),
        ("center", [Bound(8), known(20)], 88),
        ("repeat", [Bound(8), Bound(3)], math.inf),
        ("re_sub", [known("a"), known(0), Bound(1), known("bc")], 16 + 17 * 2),
    ],
)
def test_what_functions_give_is_bounded(fn: str, args: list[Bound], tokens: float) -> None:
    found = computed(fn, args, "p.py:1")
    assert found.tokens == tokens
    assert bool(found.why) == math.isinf(tokens)


class Counted:
    """Sums over a run on scripted replies, a token a byte."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.requests = self.prompt = self.generated = 0

    def _note(self, prompt: Prompt) -> int:
        self.requests += 1
        self.prompt += sum(len(part.text.encode()) for part in prompt)
        return self.seed + self.requests

    def reply(self, prompt: Prompt, sampling: Sampling) -> str:
        said = obeying(sampling, self._note(prompt), POOL)[: sampling.max_tokens]
        self.generated += len(said.encode())
        return said

    def prefer(self, prompt: Prompt, choices: tuple[str, ...]) -> int:
        return self._note(prompt) % len(choices)


def check_random(seed: int) -> bool:
    """Whether a random program can be followed; then no run is above its ceiling."""
    module = load(Generator(seed).program().source(), f"ceiling_{seed}")
    try:
        graph = trace(module.program, budget=BUDGET, is_full=True)
    except (TraceError, UnknownVariable):
        return False
    tools = resolve_tools(tools_in(module))
    of_any = ceiling_for_any(graph)
    for number, arguments in enumerate(ARGUMENTS):
        asking = EngineAsking(CAPABILITIES, n_first=0)
        found = ceiling_of(graph, arguments, asking, RunOptions(), tool_tokens=8)
        for reply in range(3):
            seen = Counted(7 * reply + number)
            endpoint = Endpoint(ScriptedBackend(seen.reply, seen.prefer))
            with contextlib.suppress(SgcError):  # it fails with these; until then it has asked
                Program(graph).run_once(arguments, RunOptions(allow_tools=tools), endpoint)
            assert seen.requests <= found.requests
            assert seen.requests <= of_any.requests or of_any.mapped
            assert seen.prompt <= found.prompt_tokens
            assert seen.generated <= found.completion_tokens
            assert math.isfinite(found.requests) or found.why
    return True


def test_no_run_of_a_random_program_is_above_its_ceiling() -> None:
    assert sum(map(check_random, range(3))) >= 2


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_no_run_of_many_random_programs_is_above_its_ceiling() -> None:
    assert sum(map(check_random, range(11, 600))) > 200
