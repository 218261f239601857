"""The most tokens that could be found cached in a pool: by an eviction that knows the future.

Belady's rule: what is used again last goes first. A prefix is used at least as soon as what
continues it, so the rule never evicts a prefix before its continuations. It is the best for the
order in which requests were admitted, given what running requests hold; another order may find
more.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request begins. n_matchable: how many of its tokens may be found cached."""

    id: int
    tokens: tuple[int, ...]
    n_matchable: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A request ends, with all of its tokens."""

    id: int
    tokens: tuple[int, ...]


Event = Admitted | Ended


def most_cached(events: Sequence[Event], pool: int) -> int:
    """The sum over all admissions."""
    paths = _paths(events)
    pages = _Pages(pool)
    held: dict[int, list[int]] = {}
    n_cached = 0
    for event, path, next_uses in zip(events, paths, _next_uses(events, paths), strict=True):
        before = held.pop(event.id, [])  # of a request that was preempted, or ends
        if isinstance(event, Admitted):
            n_cached += pages.cached(path[: event.n_matchable])
            pages.lock(path)
            held[event.id] = path
        pages.use(path, next_uses)
        pages.unlock(before)
        pages.evict()
    return n_cached


class _Pages:
    """Positions by the numbers of their prefixes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._next_use: dict[int, int] = {}  # of the positions that are there
        self._locks: Counter[int] = Counter()
        self._unlocked: list[
            tuple[int, int]
        ] = []  # minus the next use and the position: a prefix goes last

    def cached(self, path: list[int]) -> int:
        return next((n for n, each in enumerate(path) if each not in self._next_use), len(path))

    def lock(self, path: list[int]) -> None:
        self._locks.update(path)

    def use(self, path: list[int], next_uses: list[int]) -> None:
        for each, at in zip(path, next_uses, strict=True):
            self._next_use[each] = at
            self._queue(each)

    def unlock(self, path: list[int]) -> None:
        self._locks.subtract(path)
        for each in path:
            self._queue(each)

    def evict(self) -> None:
        while len(self._next_use) > self._size and self._unlocked:
            at, each = (-value for value in heapq.heappop(self._unlocked))
            if self._next_use.get(each) == at and not self._locks[each]:
                del self._next_use[each]

    def _queue(self, each: int) -> None:
        if not self._locks[each]:
            heapq.heappush(self._unlocked, (-self._next_use[each], -each))


def _paths(events: Sequence[Event]) -> list[list[int]]:
    """The number of each prefix of each event's tokens."""
    numbers: dict[tuple[int, int], int] = {}
    paths = []
    for event in events:
        path, at = [], 0
        for token in event.tokens:
            at = numbers.setdefault((at, token), len(numbers) + 1)
            path.append(at)
        paths.append(path)
    return paths


def _next_uses(events: Sequence[Event], paths: list[list[int]]) -> list[list[int]]:
    """When each position is used again after an event; `NEVER` if it is not."""
    coming: dict[int, int] = {}
    found = []
    for number in reversed(range(len(events))):
        event, path = events[number], paths[number]
        found.append([coming.get(each, NEVER) for each in path])
        if isinstance(event, Admitted):
            coming.update(dict.fromkeys(path[: event.n_matchable], number))
    return found[::-1]
