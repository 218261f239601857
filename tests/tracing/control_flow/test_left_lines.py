"""Lines that cannot be traced: the interpreter takes what follows them, and nothing else."""

from __future__ import annotations

import asyncio
import linecache
import pickle
import textwrap
import warnings
from collections import Counter
from functools import partial
from typing import Any

import pytest
from control_flow import outcome, replying

import sgc
from sgc.errors import SgcWarning, TraceError
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions

POOL = ("ab", "x", "no", "a,b,c", "")
HEAD = """
import pickle, time
import sgc

@sgc.tool(effect="pure")
def look(x: str) -> str:
    return f"<{x}>"

def helper(s, x):
    if x:
        {line}
    return s["a"]

@sgc.function
def called(s, x: str):
    s += x + sgc.gen("b", max_tokens=4)
    {line}
    s += "|" + sgc.gen("c", max_tokens=4)
    return s["b"]

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    x = s["a"]
    {place}
    s += "." + sgc.gen("z", max_tokens=3)
    return s["z"]
"""
# Lines that cannot be traced, using a text `x` of the run.
LINES = (
    "s += str(pickle.dumps(x))[:9]", "s += sgc.gen(x or 'name', max_tokens=2)",
    "s += str(time.time() > 1)", "s += {'ab': 'A'}.get(x, str(hash(x) == 1))",
)  # fmt: skip
PLACES = {
    "arm": "if x == 'x':\n    {line}",
    "loop": "for n in range(4):\n    s += sgc.gen('a', max_tokens=2)\n    x = s['a']\n"
            "    if x == 'ab':\n        {line}\n        break",
    "first": "{line}",
    "helper": "s += helper(s, x)",
    "called": "s += called(x).ret_value",
    "mapped": "s += sgc.join(',', sgc.map(called, x.split(','))['c'])",
    "fork": "fs = s.fork(2)\nfs += sgc.gen('f', max_tokens=2)\nif fs[0]['f'] == 'x':\n    {line}\n"
            "s += fs[1]['f']",
    "handled": "try:\n    y = int(x)\nexcept ValueError:\n    {line}",
    "tool": "s += look(x)\nif look(x) != '<x>':\n    {line}\ns += look('q' + x)",
}  # fmt: skip


def _program(place: str, body: str, line: str) -> Any:
    body = textwrap.indent(body, "    ").strip()
    source = HEAD.replace("{place}", body).replace("{line}", line)
    file = f"left_{place}_{LINES.index(line)}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "left_lines"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


def _run(program: Any, function: Any, seed: int) -> tuple[Any, Counter[str]]:
    """What a run gives, and what it asks the backend."""
    asked = Counter[str]()
    endpoint, options = replying(seed, POOL, asked), RunOptions(seed=seed)

    def interpret(how: RunOptions) -> Any:
        return function.run_once({"q": "x"}, how, endpoint)

    if not isinstance(program, Program):
        return outcome(lambda: interpret(options)), asked
    given = {"q": "x"}, options
    return outcome(lambda: run_with_deopt(program, endpoint.backend, *given, interpret)), asked


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("place", PLACES)
def test_the_interpreter_goes_on_and_asks_nothing_twice(place: str, line: str) -> None:
    function = _program(place, PLACES[place], line)
    with pytest.raises(TraceError):
        function.compile(check=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SgcWarning)
        program = function.compile(partial=True)
    assert may_deopt(program.graph)
    assert any("left to the interpreter" in str(each.message) for each in caught)
    for seed in range(6):
        wanted, found = _run(function, function, seed), _run(program, function, seed)
        assert found == wanted, seed


@pytest.mark.parametrize("line", LINES)
def test_paths_without_such_a_line_are_compiled(line: str) -> None:
    function = _program("arm", PLACES["arm"], line)
    program = function.compile(partial=True)
    found = []
    for seed in range(12):
        run = partial(program.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL))
        found.append(outcome(run))
    assert 0 < found.count("DeoptReached") < 6
    assert all(each == "DeoptReached" or isinstance(each, tuple) for each in found)


def test_a_program_that_goes_on_after_such_a_line_is_refused() -> None:
    body = "try:\n    {line}\nexcept BaseException:\n    s += 'lost'\ns += 'found'"
    with pytest.raises(TraceError, match="dumps"):
        _program("swallowed", body, LINES[0]).compile(partial=True)


def test_with_full_graph_it_is_an_error() -> None:
    function = _program("arm", PLACES["arm"], LINES[0])
    function.full_graph = True
    with pytest.raises(TraceError, match="dumps"):
        function.compile(partial=True)


@sgc.function
def goes_on_while_one_waits(s, q: str):
    s += q
    forks = s.fork(2)
    forks[0] += sgc.gen("a")
    forks[1] += "slow" + sgc.gen("b")
    if forks[0]["a"] == "x":
        s += str(len(pickle.dumps(forks[0]["a"])))
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
    s += str(pickle.dumps(q)) + sgc.gen("a")


def test_a_program_that_asks_nothing_before_is_refused() -> None:
    with pytest.raises(TraceError, match="dumps"):
        asks_late.compile(partial=True)
