"""What fails in a run is raised by every read, with its line; nothing hangs."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from lang.behaviours.shared import breaks
from waiting import BOUND_S

import sgc
from sgc import errors


def test_every_read_after_a_failure_raises_the_cause(recorded, within):
    """SGLang gives a KeyError, or the part of the text that there is."""

    @sgc.function
    def program(s):
        s += "fine" + sgc.gen("before")
        s += "bad" + sgc.gen("failed")

    gate = threading.Event()
    endpoint = recorded(breaks("bad"), gate=gate)
    early = program.run(backend=endpoint)
    gate.set()  # it fails once the body is over
    for state in (
        early,
        program(backend=endpoint),
        program.run_batch([{}], backend=endpoint)[0],
        program.run(backend=endpoint, stream=True),
    ):
        for read in (
            state.text,
            state.sync,
            state.messages,
            lambda state=state: state["failed"],
            lambda state=state: state.get_var("failed"),
            lambda state=state: state.get_meta_info("failed"),
            lambda state=state: list(state.text_iter()),
            lambda state=state: list(state.text_iter("failed")),
            lambda state=state: state.stream_executor.text_,
        ):
            with pytest.raises(errors.ProgramError, match="backend broke") as caught:
                within(read)
            assert caught.value.where.startswith("test_failures.py:")
            assert isinstance(caught.value.__cause__, RuntimeError)
        assert "backend broke" in str(within(state.error))


@pytest.mark.parametrize("way", ["run", "call", "batch", "stream"])
def test_a_child_that_failed_is_an_error_of_the_whole_run(recorded, within, way):
    """Whatever fails first ends the run, so every state of it tells of it."""
    gate = threading.Event()
    endpoint = recorded(breaks("bad"), gate=gate)

    @sgc.function
    def program(s):
        forks = s.fork(2)
        forks += ["bad", "fine"]
        forks += sgc.gen("own")
        s += "the trunk is whole"

    threading.Timer(0.03, gate.set).start()  # it fails once the body is over
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
        "stream": lambda: program.run(backend=endpoint, stream=True),
    }[way]()
    gate.wait(BOUND_S)
    time.sleep(0.03)
    assert "backend broke" in str(within(state.error))
    with pytest.raises(errors.ProgramError, match="backend broke"):
        within(state.sync)


def test_run_gives_a_state_whenever_its_generation_fails(recorded):
    """As in SGLang `run` raises only what the body reads or raises, at whatever time it fails."""
    failed = threading.Event()

    def reply(text, sampling):
        failed.set()
        raise RuntimeError("backend broke")

    @sgc.function(jit=False)
    def program(s):
        s += "bad" + sgc.gen("failed")
        failed.wait(BOUND_S)
        time.sleep(0.02)  # the failure has been noted when the body ends

    state = program.run(backend=recorded(reply))
    assert "backend broke" in str(state.error())
    with pytest.raises(errors.ProgramError, match="backend broke"):
        state.text()


def test_a_body_that_appends_after_a_failure_does_not_hang(recorded, within):
    """In SGLang the next `text()` or `sync()` hangs for ever."""
    failed = threading.Event()

    def reply(text, sampling):
        failed.set()
        raise RuntimeError("backend broke")

    @sgc.function(jit=False)
    def program(s):
        s += "bad" + sgc.gen("failed")
        failed.wait(BOUND_S)
        time.sleep(0.02)
        s += "more" + sgc.gen("more")
        s.sync()

    for run in (
        lambda: program.run(backend=recorded(reply)).text(),
        lambda: program(backend=recorded(reply)).text(),
        lambda: program.run_batch([{}], backend=recorded(reply))[0].text(),
        lambda: list(program.run(backend=recorded(reply), stream=True).text_iter()),
    ):
        failed.clear()
        with pytest.raises(errors.ProgramError, match="backend broke") as caught:
            within(run)
        assert caught.value.where.startswith("test_failures.py:")


def test_a_servers_error_reaches_the_reader_with_the_line(served, server, within):
    server.fail_on = (2,)

    @sgc.function
    def program(s):
        s += "one" + sgc.gen("a", max_tokens=2)
        s += "two" + sgc.gen("b", max_tokens=2)

    state = program.run(backend=served())
    error = within(state.error)
    assert isinstance(error, errors.BackendError)
    assert "request 2 was told to fail" in str(error)
    assert error.where.startswith("test_failures.py:")


def test_an_exception_in_the_body_of_a_streaming_run_reaches_readers(recorded, within):
    """SGLang prints it in the thread's hook; `text_iter` just ends and `error()` is None."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")
        s.sync()
        raise LookupError("the body broke")

    state = program.run(backend=recorded("r"), stream=True)
    seen: list[str] = []

    def follow():
        for delta in state.text_iter():
            seen.append(delta)

    with pytest.raises(LookupError, match="the body broke"):
        within(follow)
    assert "".join(seen) == "xr"
    assert isinstance(within(state.error), LookupError)
    for read in (state.text, lambda: list(state.text_iter("b")), lambda: state["b"]):
        with pytest.raises(LookupError, match="the body broke"):
            within(read)

    async def follow_async():
        return [delta async for delta in state.text_async_iter()]

    with pytest.raises(LookupError, match="the body broke"):
        asyncio.run(asyncio.wait_for(follow_async(), BOUND_S))


def test_an_exception_while_a_generation_is_under_way_reaches_readers(recorded, within):
    gate = threading.Event()

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")
        raise LookupError("the body broke")

    state = program.run(backend=recorded("r", gate=gate), stream=True)
    for read in (lambda: list(state.text_iter()), lambda: list(state.text_iter("a")), state.text):
        with pytest.raises(LookupError, match="the body broke"):
            within(read)
    gate.set()
