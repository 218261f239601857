"""Pure tools of an arm that are called before it is known that the arm comes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests_support import asked, results
from waiting import BOUND_S, until

import sgc
from sgc.errors import ToolError
from sgc.lang.tools import resolve_tools
from sgc.programs.function import Function
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.tools import early

CALLS: list[str] = []
begun = threading.Event()
cancelled = threading.Event()
fails = [False]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    CALLS.clear()
    begun.clear()
    cancelled.clear()
    fails[0] = False
    yield
    assert not early._open, "early calls are left"


@sgc.tool(effect="pure")
def search(query: str) -> str:
    CALLS.append(query)
    begun.set()
    if fails[0]:
        fails[0] = False
        raise ValueError("no network")
    return f"[{query}]"


@sgc.tool(effect="idempotent")
def note(query: str) -> str:
    CALLS.append(query)
    return query


@sgc.tool(effect="pure")
async def slow(query: str) -> str:
    begun.set()
    try:
        await asyncio.sleep(BOUND_S)
    finally:
        cancelled.set()
    return query


@sgc.function
def asks(s: Any, question: str) -> None:
    s += question + sgc.gen("needs")
    if s["needs"] == "yes":
        s += search(f"about {question.strip()}!")
    s += sgc.gen("answer")


def endpoint(reply: Callable[[], str]) -> Endpoint:
    return Endpoint(ScriptedBackend(lambda prompt, sampling: reply()))


def once_begun(reply: str = "yes") -> Callable[[], str]:
    """A model that first waits for an early call."""

    def answer() -> str:
        assert begun.wait(BOUND_S), "no call began early"
        return reply

    return answer


def run(function: Function, to: Endpoint, is_early: bool = True, **given: Any) -> RunResult:
    tools = resolve_tools([search, note, slow])
    options = RunOptions(seed=1, allow_tools=tools, early_tools=is_early)
    return function.compile().run_once(given or {"question": " tea "}, options, to)


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted replies on a thread: they wait, and the loop must go on."""
    generate = ScriptedBackend.generate

    async def on_thread(self: Any, *args: Any, **more: Any) -> Any:
        return await asyncio.to_thread(lambda: asyncio.run(generate(self, *args, **more)))

    monkeypatch.setattr(ScriptedBackend, "generate", on_thread)


def test_a_call_begins_before_its_arm_is_decided_and_is_made_once(threaded: None) -> None:
    found = run(asks, endpoint(once_begun()))
    assert CALLS == ["about tea!"]
    assert (found.early_calls, [call.is_early for call in found.tool_calls]) == (1, [True])
    plain = run(asks, endpoint(lambda: "yes"), is_early=False)
    assert (results(plain), asked(plain)) == (results(found), asked(found))
    assert plain.tool_calls[0].identity() == found.tool_calls[0].identity()
    assert (plain.early_calls, plain.tool_calls[0].is_early) == (0, False)


def test_a_call_of_an_arm_that_does_not_come_leaves_no_trace(threaded: None) -> None:
    found = run(asks, endpoint(once_begun("no")))
    assert (found.early_calls, found.tool_calls) == (1, ())
    assert found.text() == " tea nono"


def test_an_early_call_that_fails_is_made_again(threaded: None) -> None:
    fails[0] = True
    found = run(asks, endpoint(once_begun()))
    assert CALLS == ["about tea!"] * 2
    assert found.text() == " tea yes[about tea!]yes"
    assert [call.is_early for call in found.tool_calls] == [False]


def test_its_failure_in_the_arm_is_the_programs(threaded: None) -> None:
    def answer() -> str:
        reply = once_begun()()
        until(lambda: not fails[0])
        fails[0] = True  # again, for the run's own call
        return reply

    fails[0] = True
    with pytest.raises(ToolError, match="no network"):
        run(asks, endpoint(answer))
    assert len(CALLS) == 2


@sgc.function
def waits(s: Any, question: str) -> None:
    s += question + sgc.gen("needs")
    if s["needs"] == "yes":
        s += slow(question)
    s += sgc.gen("answer")


def test_an_asynchronous_call_in_vain_is_cancelled(threaded: None) -> None:
    """When its arm is decided against, and not only when the run ends."""
    asked: list[bool] = []

    def answer() -> str:
        asked.append(begun.wait(BOUND_S))
        assert len(asked) == 1 or cancelled.wait(BOUND_S), "it goes on"
        return "no"

    assert run(waits, endpoint(answer)).early_calls == 1
    assert asked == [True, True]


def test_a_run_that_fails_leaves_no_call(threaded: None) -> None:
    def answer() -> str:
        once_begun()()
        raise ValueError("broken")

    with pytest.raises(sgc.SgcError, match="broken"):
        run(waits, endpoint(answer))
    until(cancelled.is_set)


@sgc.function
def has_effects(s: Any, question: str) -> None:
    s += question + sgc.gen("needs")
    if s["needs"] == "yes":
        s += note(question)
    else:
        s += search(s["needs"])


def test_only_pure_tools_whose_arguments_are_there() -> None:
    for reply in ("yes", "no"):
        found = run(has_effects, endpoint(lambda reply=reply: reply))
        assert (found.early_calls, len(found.tool_calls)) == (0, 1)


@sgc.function(max_turns=6)
def turns(s: Any, question: str) -> None:
    topic = question
    s += topic + sgc.gen("more")
    while s["more"] == "yes":
        s += search(topic)
        topic = s["more"] + topic
        s += sgc.gen("more")


def test_turns_of_a_loop_get_their_own_arguments(threaded: None) -> None:
    def replies() -> Callable[[], str]:
        left = iter(["yes", "yes", "yes", "no"])
        return lambda: next(left)

    plain = run(turns, endpoint(replies()), is_early=False)
    CALLS.clear()
    found = run(turns, endpoint(replies()))
    assert (results(found), asked(found)) == (results(plain), asked(plain))
    assert (found.early_calls, len(found.tool_calls)) == (4, 3)
    # The last is of a turn that does not come: on a busy machine it is stopped before it begins.
    wanted = [" tea ", "yes tea ", "yesyes tea ", "yesyesyes tea "]
    assert sorted(CALLS) in (wanted, wanted[:-1])


def test_few_calls_begin_early_at_a_time(monkeypatch: pytest.MonkeyPatch, threaded: None) -> None:
    monkeypatch.setattr(early, "MAX_AT_ONCE", 0)
    assert run(asks, endpoint(lambda: "yes")).early_calls == 0


@pytest.mark.parametrize("is_replay", [False, True])
def test_what_the_log_has_is_not_called_early(
    threaded: None, tmp_path: Path, is_replay: bool
) -> None:
    """A resumed run calls no tool again, nor does a replayed one."""
    compiled, tools = asks.compile(), resolve_tools([search])
    path = tmp_path / "run.log"
    found = []
    for to_log in (RunLog.open, RunLog.read if is_replay else RunLog.open):
        with to_log(path) as log:
            options = RunOptions(seed=1, allow_tools=tools, early_tools=True, log=log)
            found.append(compiled.run_once({"question": "tea"}, options, endpoint(lambda: "yes")))
    assert CALLS == ["about tea!"]
    assert results(found[0]) == results(found[1])
    assert (found[1].early_calls, found[1].tool_calls[0].is_early) == (0, False)
