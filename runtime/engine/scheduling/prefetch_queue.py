"""The engine's prefetches: prompts computed ahead of their use, while no request waits.

They are not in the scheduler's queue. A step adds a chunk of one prefetch to its batch only if
every unfinished request is decoding and none of them has been in such a step before. So a prefetch
delays each request by at most one chunk.

Between steps a prefetch holds no page and no lock: its results are cached like any others, and a
request that needs them continues from there. Parts of it that are on disk are loaded meanwhile
(`loads.py`). It evicts only pages that were not used since it was submitted. A prefetch gives way,
which is not an error, if there is no memory, if its results were evicted, and to newer prefetches
when the queue is full.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.ints import IntBuffer
from sgc.runtime.engine.requests.request import State, Update, Usage, Work
from sgc.runtime.engine.scheduling.items import ALIGNED, Item
from sgc.runtime.engine.scheduling.scheduler import Scheduler

MAX_WAITING = 64
# A prefetch's chunk is at most a step's tokens divided by this: new requests wait until the step
# ends.
SHARE = 2


@dataclass(slots=True, eq=False)
class _Prefetch:
    """work: holds pages and a lock only while a step runs. since: the tree's clock at arrival."""

    work: Work
    since: int
    n_reached: int = 0
    n_run: int = 0

    def ended(self, gave_way: bool) -> Update:
        """Its final update; of an unfinished prompt only the computed part is counted."""
        work, now = self.work, time.monotonic()
        n_prompt = self.n_reached if gave_way else len(work.tokens)
        begun = now if work.times.admitted_at is None else work.times.admitted_at
        usage = Usage(
            n_prompt,
            n_prompt - self.n_run,
            self.n_run,
            queue_s=begun - work.times.submitted_at,
            prefill_s=now - begun,
        )
        return Update(work.request.id, final=True, usage=usage, gave_way=gave_way)


class PrefetchQueue:
    """chunk_tokens: positions a step may run, decodes included; a prefetch may take half.

    n_ended: prefetches that have ended; n_dropped: those of them that gave way; n_run: positions
    run for prefetches.
    """

    def __init__(self, cache: PrefixCache, scheduler: Scheduler, chunk_tokens: int) -> None:
        self._cache, self._scheduler, self._loads = cache, scheduler, scheduler.loads
        self._chunk_tokens = chunk_tokens
        self._queue: dict[int, _Prefetch] = {}  # by request id, in the order of arrival
        self._item: Item | None = None  # of the current step
        self.has_run = False  # whether a prefetch ran in the last step
        self.n_ended = self.n_dropped = self.n_run = 0

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, request_id: int) -> bool:
        return request_id in self._queue

    def ids(self) -> Iterator[int]:
        return iter(self._queue)

    def add(self, work: Work) -> list[Update]:
        """Adds a prefetch; returns the final updates of those that give way to it."""
        dropped = []
        if len(self._queue) >= MAX_WAITING:
            waiting = (one for one in self._queue.values() if one.n_run == 0)
            dropped.append(self._end(next(waiting), gave_way=True))
        one = self._queue[work.request.id] = _Prefetch(work, self._cache.tree.clock)
        if self._loads is not None:
            match = self._cache.match(work.tokens.view, work.request.namespace)
            self._loads.begin(work, match, one.since)
        return dropped

    def cancel(self, request_id: int) -> None:
        """Drops a prefetch; what it has computed stays cached."""
        if self._queue.pop(request_id, None) is not None:
            self.n_ended += 1

    def choose(self, items: Sequence[Item], n_live: int) -> tuple[Item | None, list[Update]]:
        """The chunk of a prefetch to run beside `items`, and the updates of prefetches that ended.

        n_live: all unfinished requests, waiting or running, and updates still to be sent.
        """
        self.has_run, self._item = False, None
        updates: list[Update] = []
        if not self._queue or len(items) < n_live or not all(map(_may_be_delayed, items)):
            return None, updates
        n_running = sum(item.n_positions for item in items)
        budget = min(max(1, self._chunk_tokens // SHARE), self._chunk_tokens - n_running)
        for one in list(self._queue.values()):
            if budget <= 0 or self._item is not None:
                break
            if not self._is_loading(one):
                update = self._begin(one, budget)
                updates += [] if update is None else [update]
        if self._item is not None:
            self.has_run = True
            for item in items:
                item.work.was_delayed = True
        return self._item, updates

    def commit(self) -> list[Update]:
        """Publishes the chosen positions once they are computed."""
        if self._item is None:
            return []
        work, n = self._item.work, self._item.n_tokens
        one = self._queue[work.request.id]
        work.n_computed += n
        self._scheduler.snapshots.ran(work)
        one.n_run, self.n_run = one.n_run + n, self.n_run + n
        self._scheduler.publish(work, is_last=True)
        one.n_reached = work.n_computed
        self._release()
        return [self._end(one, gave_way=False)] if one.n_reached == len(work.tokens) else []

    def fail(self) -> int | None:
        """After a failed step: frees what the prefetch holds and drops it; returns its id."""
        if self._item is None:
            return None
        request_id = self._item.work.request.id
        self._release()
        self.cancel(request_id)
        return request_id

    def _begin(self, one: _Prefetch, budget: int) -> Update | None:
        """Chooses its next positions; if it is done or gives way, returns its final update."""
        work, tokens = one.work, one.work.tokens.view
        match = self._cache.match(tokens, work.request.namespace)
        if match.length < one.n_reached:
            return self._end(one, gave_way=True)
        one.n_reached = match.length
        if match.length == len(tokens):
            return self._end(one, gave_way=False)
        n = min(len(tokens) - match.length, budget)
        if match.length + n < len(tokens) and n >= 2 * ALIGNED:
            n -= (match.length + n) % ALIGNED
        node = self._cache.tree.lock(match)
        pages = self._cache.reserve_unused(n, one.since)
        if len(pages) == 0 or not self._scheduler.snapshots.enter(work, match):
            self._cache.release(pages)
            self._cache.tree.unlock(node)
            return self._end(one, gave_way=True)
        work.node, work.state = node, State.RUNNING
        work.n_computed = work.n_published = match.length
        work.pages = IntBuffer(self._cache.tree.path_pages(node))
        work.pages.extend(pages)
        work.times.admitted_at = work.times.admitted_at or time.monotonic()
        self._item = Item(work, len(pages))
        self._scheduler.snapshots.plan([self._item])
        return None

    def _is_loading(self, one: _Prefetch) -> bool:
        return self._loads is not None and self._loads.is_loading(one.work)

    def _release(self) -> None:
        """Releases the pages that are not in the tree, and the lock on those that are."""
        assert self._item is not None
        work, self._item = self._item.work, None
        assert work.node is not None
        if len(work.pages) > work.n_published:
            self._cache.release(work.pages.cut(work.n_published))
        self._scheduler.snapshots.leave(work)
        self._cache.tree.unlock(work.node)
        work.node, work.state = None, State.WAITING
        work.pages.clear()

    def _end(self, one: _Prefetch, gave_way: bool) -> Update:
        del self._queue[one.work.request.id]
        self.n_ended, self.n_dropped = self.n_ended + 1, self.n_dropped + gave_way
        return one.ended(gave_way)


def _may_be_delayed(item: Item) -> bool:
    """Whether a prefetch may lengthen the step for this request: it decodes, and none has yet."""
    return item.is_decode and not item.work.was_delayed
