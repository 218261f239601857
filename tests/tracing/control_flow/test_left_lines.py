"""Lines that cannot be traced: the interpreter takes what follows them, and nothing else."""

from __future__ import annotations

import asyncio
import warnings
from collections import defaultdict
from functools import partial
from typing import Any

import pytest
from control_flow import outcome, replying
from placed_lines import PLACES, POOL, program_at, run_at
from tests_support import one_in

import sgc
from sgc.errors import SgcWarning, TraceError
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions

# Lines that cannot be traced, using a text `x` of the run.
LINES = (
    "s += str(globals()['__name__'] == x)[:9]", "s += sgc.gen(x or 'name', max_tokens=2)",
    "s += str(globals() is not x)", "s += {'ab': 'A'}.get(x, str(globals() is x))",
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize(("place", "line"), one_in(2, PLACES, LINES))
def test_the_interpreter_goes_on_and_asks_nothing_twice(place: str, line: str) -> None:
    function = program_at(place, line, LINES)
    with pytest.raises(TraceError):
        function.compile(check=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SgcWarning)
        program = function.compile(partial=True)
    assert may_deopt(program.graph)
    assert any("left to the interpreter" in str(each.message) for each in caught)
    for seed in range(6):
        wanted, found = run_at(function, function, seed), run_at(program, function, seed)
        assert found == wanted, seed


@pytest.mark.sweep
@pytest.mark.parametrize("line", LINES)
def test_paths_without_such_a_line_are_compiled(line: str) -> None:
    function = program_at("arm", line, LINES)
    program = function.compile(partial=True)
    found = []
    for seed in range(12):
        run = partial(program.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL))
        found.append(outcome(run))
    assert 0 < found.count("DeoptReached") < 6
    assert all(each == "DeoptReached" or isinstance(each, tuple) for each in found)


def test_a_program_that_goes_on_after_such_a_line_is_refused() -> None:
    body = "try:\n    {line}\nexcept BaseException:\n    s += 'lost'\ns += 'found'"
    with pytest.raises(TraceError, match="names that no trace"):
        program_at("swallowed", LINES[0], LINES, body).compile(partial=True)


def test_with_full_graph_it_is_an_error() -> None:
    function = program_at("arm", LINES[0], LINES)
    function.full_graph = True
    with pytest.raises(TraceError, match="names that no trace"):
        function.compile(partial=True)


def unrolls(told: Any) -> Any:
    """A program for which what stops the trace needs a value that grows in the first loop, which
    never ends then."""

    def program(s, q: str, xs: list[str]):
        seen = q
        for x in xs:
            seen += x
        for x in xs:
            s += x + sgc.gen("x", max_tokens=4)
        if xs and s["x"] == "yes":
            s += told(seen)

    return sgc.function(program)


@pytest.mark.slow
@pytest.mark.parametrize("told", [lambda x: str(globals() is x), lambda x: str(hash(x) * 0)])
def test_where_the_budget_is_spent_before_any_request_more_is_left(told: Any) -> None:
    function = unrolls(told)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SgcWarning)
        program = function.compile(partial=True)
    found = []
    for seed in range(8):
        given = {"q": "x", "xs": ["a", "b"]}, RunOptions(seed=seed)
        wanted, each = (
            outcome(partial(of.run_once, *given, replying(seed, ("yes", "no"))))
            for of in (function, program)
        )
        assert each in (wanted, "DeoptReached")
        found.append(each)
    assert found.count("DeoptReached") < len(found)


@sgc.function
def holds_twice(s, q: str, words: list[str]):
    ends = defaultdict(list)
    for word in words:
        s += word + sgc.gen("x", max_tokens=4)
        if s["x"] == "yes":
            kept = ends[s["x"]]
            ends[s["x"]].append(word)
            s += str(len(kept))
    return len(ends)


@pytest.mark.full_check
def test_a_line_whose_code_would_only_end_a_run_is_left() -> None:
    """It changes what another variable, which is read later, has a part of."""
    with pytest.raises(TraceError, match="another value holds too"):
        holds_twice.compile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SgcWarning)
        program = holds_twice.compile(partial=True)
    found = []
    for seed in range(8):
        given = {"q": "x", "words": ["a", "b"]}, RunOptions(seed=seed)
        wanted, each = (
            outcome(partial(of.run_once, *given, replying(seed, ("yes", "no"))))
            for of in (holds_twice, program)
        )
        assert each in (wanted, "DeoptReached")
        found.append(each)
    assert 0 < found.count("DeoptReached") < len(found)


@sgc.function
def goes_on_while_one_waits(s, q: str):
    s += q
    forks = s.fork(2)
    forks[0] += sgc.gen("a")
    forks[1] += "slow" + sgc.gen("b")
    if forks[0]["a"] == "x":
        s += str(globals() is forks[0]["a"])
    s += forks[1]["b"]


class Slow(ScriptedBackend):
    """Counts its requests; some take long."""

    n = 0

    async def generate(self, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        self.n += 1
        if "slow" in prompt[-1].text:
            await asyncio.sleep(0.05)
        return await super().generate(prompt, *args, **kwargs)


def test_what_is_under_way_ends_first() -> None:
    program, backend = goes_on_while_one_waits.compile(partial=True), Slow(lambda *_: "x")
    interpret = partial(goes_on_while_one_waits.run_once, {"q": "q"})
    options = RunOptions(seed=1)
    found = run_with_deopt(
        program, backend, {"q": "q"}, options, lambda how: interpret(how, Endpoint(backend))
    )
    assert backend.n == 2
    assert found.text() == interpret(options, Endpoint(Slow(lambda *_: "x"))).text()


@sgc.function
def asks_late(s, q: str):
    s += str(globals() is q) + sgc.gen("a")


def test_a_program_that_asks_nothing_before_is_refused() -> None:
    with pytest.raises(TraceError, match="names that no trace"):
        asks_late.compile(partial=True)
