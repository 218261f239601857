"""Runs on an event loop of the calling thread, and what a run leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref

import pytest

import sgc
from sgc.errors import ProgramRaised, UsageError
from sgc.interpreter.calls import finished, start_eager
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.instance import Instance
from sgc.runtime.executor.interface.failures import forget_frames
from sgc.runtime.executor.run import loop as loops
from sgc.runtime.executor.run.loop import OwnLoop, is_loop_running
from sgc.runtime.executor.run.options import RunOptions


@sgc.function
def numbers(s, q: str):
    s += q + sgc.gen("a") + " and " + sgc.gen("b")
    for fork in (forks := s.fork(3)):
        fork += sgc.gen("c")
    s += f"{int(s['a']) + int(s['b'])}" + "".join(fork["c"] for fork in forks)


def backend(*replies: str) -> ScriptedBackend:
    left = list(replies)
    return ScriptedBackend(lambda prompt, sampling: left.pop(0))


@pytest.fixture
def loop():
    loop = OwnLoop()
    yield loop
    loop.close()


def test_an_interpreted_run_and_a_compiled_one_need_no_other_thread(loop):
    graph = numbers.compile().graph
    before = {thread.ident for thread in threading.enumerate()}
    compiled = loop.run(run_graph(graph, backend("1", "2", "x", "y", "z"), {"q": "?"}))
    state = start_eager(numbers, {"q": "?"}, backend("1", "2", "x", "y", "z"), RunOptions(), loop)
    interpreted = finished(state)
    assert compiled.streams[0].text == interpreted.streams[0].text == "?1 and 23xyz"
    assert {thread.ident for thread in threading.enumerate()} <= before


def test_an_error_of_the_body_ends_its_run(loop):
    with pytest.raises(ValueError, match="invalid literal"):
        start_eager(numbers, {"q": "?"}, backend("a", "b"), RunOptions(), loop)


def test_another_thread_gives_work_and_does_not_wait(loop):
    came, refused = [], []

    def other() -> None:
        loop.soon(came.append, 1)
        try:
            loop.run(asyncio.sleep(0))
        except UsageError as error:
            refused.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    loop.run(asyncio.sleep(0))
    assert came == [1]
    assert "another thread" in refused[0]


def test_compiling_inside_an_event_loop_checks_as_outside():
    async def compiled():
        assert is_loop_running()
        return numbers.compile().graph

    assert asyncio.run(compiled()) == numbers.compile().graph


def test_a_run_that_fails_in_code_leaves_no_cycles(loop, monkeypatch):
    """Else all its values stay until the garbage collector comes, whose time grows with them."""
    runs = []

    def noted(self, *args, before=Instance.__init__):
        before(self, *args)
        runs.append(weakref.ref(self))

    monkeypatch.setattr(Instance, "__init__", noted)
    graph = numbers.compile().graph
    del runs[:]
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ProgramRaised, match="invalid literal") as caught:
            loop.run(run_graph(graph, backend("a", "b", "x", "y", "z"), {"q": "?"}))
        forget_frames(caught.value)
        del caught
        assert [run() for run in runs] == [None]
    finally:
        gc.enable()


def test_a_task_that_never_ends_is_left_behind(monkeypatch):
    """As one whose run was interrupted in the event loop's own code."""
    monkeypatch.setattr(loops, "CLOSE_S", 0.05)

    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def begin() -> None:
        held.append(asyncio.get_running_loop().create_task(stubborn()))
        await asyncio.sleep(0)

    held: list[asyncio.Task[None]] = []
    own = OwnLoop()
    own.run(begin())
    own.close()
    assert not held[0].done()
