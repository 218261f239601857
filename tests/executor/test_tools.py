"""Tool calls at run time: order, overlap, timeouts, failures, and what is taken as a value."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest
from waiting import BOUND_S

import sgc
from sgc.errors import ProgramError, SgcError, ToolError
from sgc.ir.text.parser import parse
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.plain import MAX_BYTES
from sgc.runtime.executor.interface.tools import AllowedTools, ToolImpl
from sgc.runtime.executor.tools import threads as tool_threads

GRAPH = """sgir 1
program @p() {{
  %s0 = stream "p"
  {}
  publish %s0 "p" keys=["v"] items=[%v0]
  return
}}
"""


def call(number: int, args: str = "[]", effect: str = "effect", rest: str = "") -> str:
    return f'%v{number}: text = tool "m:t{number}" {args} effect="{effect}" signature="()"{rest}'


def run(lines, tools, backend=None, timeout_s=BOUND_S, **options):
    """Runs calls on tools by name, whose Python may be a coroutine function."""
    impls = {
        f"m:{name}": ToolImpl(f"m:{name}", "()", python, asyncio.iscoroutinefunction(python))
        for name, python in tools.items()
    }
    graph = parse(GRAPH.format("\n  ".join(lines)))
    chosen = sgc.runs.options.RunOptions(allow_tools=AllowedTools(impls), **options)
    backend = backend or ScriptedBackend(lambda prompt, sampling: "r")
    return asyncio.run(asyncio.wait_for(run_graph(graph, backend, {}, chosen), timeout_s))


def slow(log, name, wait_s=0.02, gives="x"):
    def python(*args):
        log.append(f"+{name}")
        time.sleep(wait_s)
        log.append(f"-{name}")
        return gives

    return python


@pytest.mark.parametrize("effect", ["idempotent", "effect"])
def test_calls_with_an_effect_run_in_the_programs_order(effect):
    log: list[str] = []
    tools = {f"t{i}": slow(log, i, wait_s=0.02 / (i + 1)) for i in range(4)}
    result = run([call(i, effect=effect) for i in range(4)], tools)
    assert log == [f"{sign}{i}" for i in range(4) for sign in "+-"]
    assert [c.ordinal for c in result.tool_calls] == [0, 1, 2, 3]


def test_an_effect_waits_for_one_before_it_whose_arguments_come_late():
    log: list[str] = []
    lines = [call(0, effect="pure"), call(1, "[%v0]"), call(2)]
    run(lines, {f"t{i}": slow(log, i) for i in range(3)})
    assert log == ["+0", "-0", "+1", "-1", "+2", "-2"]


def test_pure_calls_overlap_each_other_and_generations():
    together = threading.Barrier(3)

    def meets(*args):
        together.wait(BOUND_S)
        return "x"

    class Meeting(ScriptedBackend):
        async def generate(self, prompt, sampling, on_delta=None):
            await asyncio.to_thread(together.wait, BOUND_S)
            return await super().generate(prompt, sampling, on_delta)

    lines = ["%s1, %g = gen %s0", call(0, effect="pure"), call(1, effect="pure")]
    run(lines, {"t0": meets, "t1": meets}, Meeting(lambda prompt, sampling: "r"))


def test_asynchronous_tools_run_on_the_loop_and_see_no_program():
    async def python():
        assert sgc.core.session.current_session() is None
        await asyncio.sleep(0.001)
        return threading.current_thread().name

    assert run([call(0)], {"t0": python})["v"] == threading.current_thread().name


def boom(*args):
    raise ValueError("boom")


def leaves(*args):
    raise SystemExit(3)


async def aboom(*args):
    raise KeyError("boom")


@pytest.mark.parametrize("python", [boom, leaves, aboom])
def test_a_failed_call_fails_the_run_with_its_cause(python):
    with pytest.raises(ToolError, match=r"the tool 'm:t0' failed: \w+: .*(boom|3)") as caught:
        run([call(0)], {"t0": python})
    assert isinstance(caught.value.__cause__, (ValueError, SystemExit, KeyError))


def test_on_error_is_what_the_program_sees():
    result = run([call(0, rest=' on_error="\\"sorry\\""')], {"t0": boom})
    assert result["v"] == "sorry"
    assert result.tool_calls[0].error == "ValueError: boom"


def test_a_late_call_is_an_error_and_the_run_does_not_wait_for_it():
    release = threading.Event()

    async def sleeps():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # ignores that it was cancelled
        return "x"

    for python in (release.wait, sleeps):  # neither ends by itself
        with pytest.raises(ToolError, match=r"TimeoutError: it took longer than 0\.02 s"):
            run([call(0, rest=" timeout_s=0.02")], {"t0": python})
    release.set()


def test_threads_are_bounded_and_a_call_that_finds_none_fails(monkeypatch):
    monkeypatch.setattr(tool_threads, "_threads", tool_threads._Threads(2))
    monkeypatch.setattr(tool_threads, "MAX_WAIT_S", 0.05)
    n_inside, release = [0], threading.Event()

    def held():
        n_inside[0] += 1
        release.wait(BOUND_S)
        return "x"

    lines = [call(i, effect="pure") for i in range(3)]
    threading.Timer(0.3, release.set).start()  # the error waits for the calls before it
    with pytest.raises(ToolError, match=r"no thread was free for 0\.05 s"):
        run(lines, {f"t{i}": held for i in range(3)})
    time.sleep(0.02)
    assert n_inside[0] == 2, "the third is not begun later either"
    assert run([call(0)], {"t0": lambda: "free again"})["v"] == "free again"


def test_cancelling_a_run_leaves_its_call_alone():
    async def main():
        begun, release = threading.Event(), threading.Event()

        def held():
            begun.set()
            release.wait(BOUND_S)

        impl = ToolImpl("m:t0", "()", held)
        options = sgc.runs.options.RunOptions(allow_tools=AllowedTools({"m:t0": impl}))
        graph = parse(GRAPH.format(call(0)))
        backend = ScriptedBackend(lambda prompt, sampling: "r")
        task = asyncio.create_task(run_graph(graph, backend, {}, options))
        await asyncio.to_thread(begun.wait, BOUND_S)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=BOUND_S / 2)
        release.set()
        assert done

    asyncio.run(main())


LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("type_", "gives", "found"),
    [
        ("text", 3, "found a int"),
        ("text", None, "found a NoneType"),
        ("int", True, "found a bool"),
        ("int", 1.0, "found a float"),
        ("float", math.nan, "not a number of JSON"),
        ("bool", "True", "found a str"),
        ("list[text]", ["a", 1], "found a int"),
        ("list[text]", "ab", "found a str"),
        ("json", {1: 2}, "key must be a text"),
        ("json", b"x", "a bytes is not a text"),
        ("json", LOOP, "nests deeper than 64"),
        ("text", "x" * (MAX_BYTES + 1), "at most 10485760"),
    ],
)
def test_a_value_that_is_not_of_the_type_is_an_error(type_, gives, found):
    line = call(0).replace(": text", f": {type_}")
    with pytest.raises(ToolError, match="as its annotation says") as caught:
        run([line], {"t0": lambda: gives})
    assert found in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "gives", "value"),
    [
        ("float", 2, 2.0),
        ("json", ("a", {"b": (1,)}), ["a", {"b": [1]}]),
        ("json", None, None),
        ("list[text]", ("a",), ["a"]),
        ("text", "\ud800", "\ud800"),
    ],
)
def test_values_are_plain_data(type_, gives, value):
    found = run([call(0).replace(": text", f": {type_}")], {"t0": lambda: gives})["v"]
    assert (found, type(found)) == (value, type(value))


def test_what_a_tool_does_to_its_arguments_is_its_own():
    def grows(items):
        items.append("more")
        return ",".join(items)

    lines = ['%l = list items=["a"]', call(0, "[%l]"), call(1, "[%l]")]
    assert run(lines, {"t0": grows, "t1": grows})["v"] == "a,more"


def test_a_call_in_a_thread_may_run_a_program_of_its_own():
    @sgc.function
    def inner(s):
        s += "in" + sgc.gen("g")

    endpoint = sgc.runs.endpoint.Endpoint(ScriptedBackend(lambda prompt, sampling: "ner"))

    @sgc.tool
    def calls() -> str:
        return inner.run(backend=endpoint).text()

    @sgc.function
    def outer(s):
        s += calls()

    assert outer.run(backend=endpoint).text() == "inner"
    assert outer(backend=endpoint).text() == "inner"


def test_an_error_of_a_tool_is_placed_at_the_users_line():
    failing = sgc.tool(boom)

    @sgc.function
    def program(s):
        s += "a" + failing()

    endpoint = sgc.runs.endpoint.Endpoint(ScriptedBackend(lambda prompt, sampling: "r"))
    for start in (program.run, program):
        with pytest.raises(SgcError, match="boom") as caught:
            start(backend=endpoint).text()
        assert isinstance(caught.value, (ToolError, ProgramError))
        assert caught.value.where.startswith("test_tools.py:")
