"""Event loops for synchronous callers: one in a thread of its own, and those of a caller's own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Protocol, TypeVar

from sgc.errors import UsageError
from sgc.runtime.executor.loops.idle import Idle

T = TypeVar("T")
CLOSE_S = 1.0  # how long cancelled tasks may take to end


class Loop(Protocol):
    """Where a run lives, as the thread that runs a program's body sees it.

    is_shared: whether other threads can wait for it too.
    """

    is_shared: bool

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        """Makes the loop run a call in a new context, as a run's callbacks must not see this
        thread's program as theirs."""
        ...

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits; an interrupt here cancels it there."""
        ...


class LoopThread:
    """An event loop on a daemon thread; started on first use, shared by the process.

    idle: tells when it has nothing to do.
    """

    is_shared = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.idle = Idle()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = self.idle.new_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="sgc-loop", daemon=True
                ).start()
            return self._loop

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        self.loop.call_soon_threadsafe(call, *args, context=Context())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            refuse_own_thread(self.loop)
        except UsageError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def forget(self) -> None:
        """Forgets the loop in a forked child, which does not have the thread."""
        self._lock = threading.Lock()
        self._loop = None
        self.idle = Idle()


class OwnLoop:
    """An event loop that the calling thread runs itself while it waits, for runs whose requests are
    answered at once: threads that wait for each other would cost more than all else.

    Another thread can give it work, but cannot wait for it. close: call it when no run uses the
    loop.
    """

    is_shared = False

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.get_ident()

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        if threading.get_ident() == self._thread:
            self._loop.call_soon(call, *args, context=Context())
        else:
            self._loop.call_soon_threadsafe(call, *args, context=Context())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if threading.get_ident() != self._thread:
            work.close()
            raise UsageError(
                "a thread of the program waits for a run that another thread makes",
                hint="read the state on the thread that runs the program",
            )
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        """Cancels the tasks that an interrupted run has left. One whose run was interrupted just as
        it was to go on may never hear of it, and is left behind."""
        if left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(left, timeout=CLOSE_S))
            self._loop.set_exception_handler(lambda *_: None)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def is_loop_running() -> bool:
    """Whether this thread runs an event loop, inside which it cannot run another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def refuse_own_thread(loop: asyncio.AbstractEventLoop) -> None:
    """Raises UsageError on the loop's own thread, where waiting for the loop would deadlock."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return
    if running is loop:
        raise UsageError(
            "a callback of a run waits for a run; both are done by the same thread",
            hint="hand the work to a thread of your own",
        )


shared = LoopThread()
os.register_at_fork(after_in_child=shared.forget)
