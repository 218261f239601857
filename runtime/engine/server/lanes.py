"""Threads for work that would block the event loop, shared round-robin: one job of each owner in
turn, so that no owner waits for all jobs of another.

A cancelled job leaves the queue at once; if it is running, its flag is set, and it keeps its thread
until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TypeVar

T = TypeVar("T")
Owner = object


class Lane:
    """Runs up to n_threads jobs at a time. It belongs to the event loop of its first use."""

    def __init__(self, name: str, n_threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(n_threads, name)
        self._n_free = n_threads
        self._waiting: OrderedDict[Owner, deque[asyncio.Future[None]]] = OrderedDict()

    async def run(self, owner: Owner, job: Callable[[Event], T]) -> T:
        """Runs a job and returns its result; the job gets a flag that cancelling sets."""
        await self._turn(owner)
        is_dropped = Event()
        loop = asyncio.get_running_loop()
        try:
            running = self._threads.submit(job, is_dropped)
        except BaseException:
            self._next()
            raise
        running.add_done_callback(lambda done: self._free_from_thread(loop, done))
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            is_dropped.set()
            raise

    def close(self) -> None:
        """Drops waiting jobs; a running job continues to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, owner: Owner) -> None:
        if self._n_free > 0:
            self._n_free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._next()  # the turn came just now
            else:
                self._leave(owner, turn)
            raise

    def _leave(self, owner: Owner, turn: asyncio.Future[None]) -> None:
        """Takes a cancelled turn out of the queue, unless `_next` has met it there before."""
        turns = self._waiting.get(owner, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[owner]

    def _free_from_thread(self, loop: asyncio.AbstractEventLoop, done: Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(self._next)

    def _next(self) -> None:
        """Gives a free thread to the first job of the owner that has waited longest. Turns may be
        cancelled whose tasks have not run since, and so have not left the queue."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns  # behind the others
            if not turn.done():
                turn.set_result(None)
                return
        self._n_free += 1
