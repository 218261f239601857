"""Returns the rows of a batch to its caller: all of them, or one by one as they end.

The batch is a task on the shared loop. The caller ends it by closing the feed, which cancels the
task and waits for it: an interrupt or a cancellation leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

from sgc.errors import UsageError
from sgc.runs.batch import WINDOW, Batch
from sgc.runs.run import RunState
from sgc.runtime.executor.run.loop import refuse_own_thread, shared

T = TypeVar("T")

_open: set[Feed] = set()  # feeds under way, to be closed before Python exits


class Feed:
    """A batch under way, and its finished rows that were not taken yet.

    It can be made on any thread; its coroutines run on the shared loop, and the first call of one
    starts the batch. ordered: whether rows are returned in order; else as they end.
    """

    def __init__(self, batch: Batch, ordered: bool = True) -> None:
        self.loop = shared.loop
        self._batch = batch
        self._ordered = ordered
        self._ended: dict[int, RunState] = {}
        self._n_given = 0
        self._changed = asyncio.Event()
        self._window = asyncio.Semaphore(self._n_held())
        self._bar = _bar(batch)
        self._work: asyncio.Task[None] | None = None

    async def all(self) -> list[RunState]:
        """Every row, in order. Raises BatchFailed beyond `max_errors`."""
        self._work = asyncio.ensure_future(self._batch.run(self._keep))
        await self._work
        return [self._batch.states[index] for index in range(self._batch.n_rows)]

    async def next(self) -> RunState | None:
        """The next row; None after the last. Raises BatchFailed beyond `max_errors`."""
        if self._work is None:
            _open.add(self)
            self._work = asyncio.ensure_future(self._batch.run(self._offer, self._ordered))
            self._work.add_done_callback(lambda _: self._changed.set())
        while (index := self._next_index()) is None:
            if self._work.done():
                self._work.result()
                return None
            self._changed.clear()
            await self._changed.wait()
        self._n_given += 1
        self._window.release()
        return self._ended.pop(index)

    async def close(self) -> None:
        """Ends the batch: cancels rows under way, and waits for them."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        _open.discard(self)
        self._bar.close()

    def _n_held(self) -> int:
        """How many finished rows may wait to be taken. If rows start in another order than they
        are returned in, a finished row may have to wait for most of its window."""
        at_once = self._batch.options.max_concurrency
        is_moved = list(self._batch.order(in_windows=True)) != list(range(self._batch.n_rows))
        return max(at_once, WINDOW) if self._ordered and is_moved else at_once

    def _next_index(self) -> int | None:
        if self._ordered:
            return self._n_given if self._n_given in self._ended else None
        return next(iter(self._ended), None)

    async def _keep(self, index: int, state: RunState) -> None:
        self._bar.update()
        self._batch.states[index] = state

    async def _offer(self, index: int, state: RunState) -> None:
        self._bar.update()
        self._ended[index] = state
        self._changed.set()
        await self._window.acquire()  # rows that were not taken yet delay new ones


def run_all(batch: Batch) -> list[RunState]:
    """Runs every row and returns them in order. Raises BatchFailed beyond `max_errors`."""
    refuse_own_thread(shared.loop)
    feed = Feed(batch)
    try:
        return shared.run(feed.all())
    finally:
        _close(feed)


def run_each(batch: Batch, ordered: bool) -> Iterator[RunState]:
    """Yields rows in order, or as they end.

    At most `max_concurrency` finished rows wait to be taken while as many are under way; if they
    are returned in order and the plan has moved some, at most WINDOW.
    """
    refuse_own_thread(shared.loop)
    feed = Feed(batch, ordered)
    try:
        while (state := shared.run(feed.next())) is not None:
            yield state
    finally:
        _close(feed)


async def arun_each(batch: Batch, ordered: bool) -> AsyncGenerator[RunState, None]:
    """The same for coroutines of any loop."""
    feed = Feed(batch, ordered)
    try:
        while (state := await _on_shared_loop(feed.next())) is not None:
            yield state
    finally:
        await asyncio.shield(_on_shared_loop(feed.close()))


def _on_shared_loop(work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, shared.loop))


def _close(feed: Feed) -> None:
    """Closes a feed and waits for it, if possible: an iterator may be dropped on any thread."""
    if sys.is_finalizing() or feed.loop is not shared.loop:
        return  # its loop has stopped, or belongs to the parent of a forked child
    closing = asyncio.run_coroutine_threadsafe(feed.close(), feed.loop)
    try:
        refuse_own_thread(feed.loop)
    except UsageError:
        return  # dropped on the loop's own thread, which closes it next
    closing.result()


@atexit.register
def _close_all() -> None:
    """Closes unfinished iterators while their loop still runs; some are dropped only after that."""
    for feed in list(_open):
        _close(feed)


class _NoBar:
    def update(self) -> None: ...

    def close(self) -> None: ...


def _bar(batch: Batch) -> Any:
    if not batch.options.progress:
        return _NoBar()
    from tqdm.auto import tqdm

    return tqdm(total=batch.n_rows, unit="row")
