"""One event loop in a thread of its own, for synchronous callers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from sgc.errors import UsageError

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread; started on first use, shared by the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="sgc-loop", daemon=True
                ).start()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits; an interrupt here cancels it there."""
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
