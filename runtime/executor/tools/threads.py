"""Runs a tool's Python: on a thread, or on the event loop if it is asynchronous.

A thread cannot be stopped. A call that outlives its timeout, or its run, is abandoned: the run
continues without it, and its thread stays busy until the call ends. There are `MAX_THREADS`
threads, and at most `MAX_WAITING` calls wait for one; Python does not wait for the threads at exit.
An asynchronous tool is cancelled; if it ignores that, it is abandoned too.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

from sgc.errors import ToolError

T = TypeVar("T")

MAX_THREADS = 64
MAX_WAITING = 100_000
MAX_WAIT_S = 600.0  # for a thread
MAX_ABANDONED = 1024  # asynchronous calls that ignore their cancellation

# The value of a call, and its error: not raised in the loop, since it may be a SystemExit.
Outcome = tuple[Any, BaseException | None]


class _Job:
    """One call: its thread tells the loop when it begins and what it returns."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._call = call
        self.begun: asyncio.Future[Outcome] = self._loop.create_future()
        self.ended: asyncio.Future[Outcome] = self._loop.create_future()
        self.is_abandoned = False

    def run(self) -> None:
        if self.is_abandoned:
            return
        self._tell(self.begun, (None, None))
        try:
            outcome: Outcome = (self._call(), None)
        except BaseException as error:
            outcome = (None, error)
        self._tell(self.ended, outcome)

    def _tell(self, future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        def tell() -> None:
            if not future.done():
                future.set_result(outcome)

        with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
            self._loop.call_soon_threadsafe(tell, context=Context())


class _Threads:
    """Daemon threads, started when needed, that make one call after another."""

    def __init__(self, n_threads: int = MAX_THREADS) -> None:
        self._n_most = n_threads
        self.forget()

    def forget(self) -> None:
        """Forgets all threads and calls, which a forked child does not have."""
        self._n_threads = 0
        self._n_idle = 0
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()

    def put(self, job: _Job) -> None:
        with self._changed:
            if len(self._jobs) >= MAX_WAITING:
                raise ToolError(f"{MAX_WAITING} tool calls already wait for a thread")
            self._jobs.append(job)
            if self._n_idle >= len(self._jobs):
                self._changed.notify()
            elif self._n_threads < self._n_most:
                self._n_threads += 1
                threading.Thread(target=self._work, name="sgc-tool", daemon=True).start()

    @property
    def n_busy(self) -> int:
        """How many calls run or wait for a thread."""
        return self._n_threads - self._n_idle + len(self._jobs)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._n_idle += 1
                while not self._jobs:
                    self._changed.wait()
                self._n_idle -= 1
                job = self._jobs.popleft()
            job.run()
            del job


_threads = _Threads()
os.register_at_fork(after_in_child=_threads.forget)
_abandoned: set[asyncio.Task[Any]] = set()
# Calls that are waited for: their ends wake the loop. A thread reports only later that it is idle.
_waited_for: set[_Job | asyncio.Task[Any]] = set()
os.register_at_fork(after_in_child=_waited_for.clear)


def has_idle_threads() -> bool:
    """Whether so few calls run that one more delays no other call."""
    return _threads.n_busy < MAX_THREADS // 2


def n_running() -> int:
    """How many calls run, or wait for a thread, and will wake the loop of their caller."""
    return len(_waited_for)


async def call_on_thread(call: Callable[[], Any], timeout_s: float | None) -> Outcome:
    """Returns the value or the error of a call; TimeoutError if it runs for too long."""
    job = _Job(call)
    try:
        _threads.put(job)
        _waited_for.add(job)
        await asyncio.wait({job.begun}, timeout=MAX_WAIT_S)
        if not job.begun.done():
            raise ToolError(
                f"no thread was free for {MAX_WAIT_S:g} s; all {MAX_THREADS} are busy with tools",
                hint="set timeout_s of the tools, and make them end by then",
            )
        await asyncio.wait({job.ended}, timeout=timeout_s)
        return job.ended.result() if job.ended.done() else (None, _late(timeout_s))
    finally:
        _waited_for.discard(job)
        job.is_abandoned = True


async def call_on_loop(
    call: Callable[[], Coroutine[Any, Any, Any]], timeout_s: float | None
) -> Outcome:
    """Calls an asynchronous tool, as `call_on_thread` does; it is cancelled at its timeout."""
    if len(_abandoned) >= MAX_ABANDONED:
        raise ToolError(f"{MAX_ABANDONED} tool calls ignore their cancellation")
    # An empty context: code that the tool calls is not part of the program that called the tool.
    work = asyncio.get_running_loop().create_task(_outcome(call), context=Context())
    _waited_for.add(work)
    try:
        await asyncio.wait({work}, timeout=timeout_s)
        return work.result() if work.done() else (None, _late(timeout_s))
    finally:
        _waited_for.discard(work)
        if not work.done():
            work.cancel()
            _abandoned.add(work)
            work.add_done_callback(_abandoned.discard)


async def to_its_end(work: Coroutine[Any, Any, T], grace_s: float) -> T:
    """Returns the result of a coroutine; if cancelled, first gives it `grace_s` to end."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        end_s = time.monotonic() + grace_s
        while not task.done() and (left_s := end_s - time.monotonic()) > 0:
            with suppress(asyncio.CancelledError):  # the end of a run cancels its tasks again
                await asyncio.wait({task}, timeout=left_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def _outcome(call: Callable[[], Coroutine[Any, Any, Any]]) -> Outcome:
    try:
        return await call(), None
    except BaseException as error:
        return None, error


def _late(timeout_s: float | None) -> TimeoutError:
    return TimeoutError(f"it took longer than {timeout_s:g} s")
