"""Orders of waiting requests, from which `waiting.py` takes the next one."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Protocol

from sgc.runtime.engine.ints import Ints, common_prefix
from sgc.runtime.engine.requests.request import State, Work


class Order(Protocol):
    """Orders waiting requests; those no longer WAITING may stay a while and are skipped."""

    def add(self, work: Work) -> None: ...
    def peek(self) -> Work | None: ...
    def discard(self, work: Work) -> None:
        """Removes a request, if it is there."""
        ...


class Heap:
    """Smallest key first. Stale entries are dropped when popped, or when they are half of all."""

    def __init__(self, key: Callable[[Work], tuple[int, ...]]) -> None:
        self._key = key
        self._heap: list[tuple[tuple[int, ...], int, Work]] = []  # key, order
        self._n_left = 0

    def add(self, work: Work) -> None:
        heapq.heappush(self._heap, (self._key(work), work.order, work))

    def peek(self) -> Work | None:
        while self._heap:
            if self._counts(self._heap[0]):
                return self._heap[0][2]
            heapq.heappop(self._heap)
            self._n_left = max(0, self._n_left - 1)
        return None

    def discard(self, work: Work) -> None:
        """Marks its entry as stale; the caller has changed its state or its key."""
        self._n_left += 1
        if 2 * self._n_left > len(self._heap):
            self._heap = list({e[2]: e for e in self._heap if self._counts(e)}.values())
            heapq.heapify(self._heap)
            self._n_left = 0

    def _counts(self, entry: tuple[tuple[int, ...], int, Work]) -> bool:
        key, _, work = entry
        return work.state is State.WAITING and key == self._key(work)


class ByPrompt:
    """Requests sorted by prompt, so that those with a common prefix are adjacent."""

    def __init__(self) -> None:
        self._sorted: list[tuple[bytes, bytes, int, Work]] = []  # namespace, prompt, order

    def add(self, work: Work) -> None:
        insort(self._sorted, (*_place(work), work))

    def discard(self, work: Work) -> None:
        index = bisect_left(self._sorted, _place(work))
        if index < len(self._sorted) and self._sorted[index][3] is work:
            del self._sorted[index]

    def peek(self) -> Work | None:
        return self._sorted[0][3] if self._sorted else None

    def beginning_with(self, namespace: bytes, tokens: Ints) -> Iterator[Work]:
        data = _bytes_of(tokens)
        start = bisect_left(self._sorted, (namespace, data))
        # No token has this many high bits, so this sorts after every continuation of the tokens.
        end = bisect_left(self._sorted, (namespace, data + b"\xff" * 4), lo=start)
        return (entry[3] for entry in self._sorted[start:end])


def _place(work: Work) -> tuple[bytes, bytes, int]:
    if work.wait.prompt is None:
        work.wait.prompt = _bytes_of(work.request.tokens)
    return work.request.namespace, work.wait.prompt, work.order


def _bytes_of(tokens: Ints) -> bytes:
    return tokens.astype("<u4").tobytes()


def _longest_known(work: Work) -> tuple[int, ...]:
    return (-work.wait.n_known, work.wait.known_since)


class ByPrefix:
    """Requests ordered by their cached prefixes; smallest `key` first.

    wait.n_known: an upper bound of a request's cached prefix, exact unless some was evicted.
    """

    def __init__(
        self, known: Callable[[Work], int], key: Callable[[Work], tuple[int, ...]] = _longest_known
    ) -> None:
        self._known = known
        self._heap = Heap(key)
        self._by_prompt = ByPrompt()
        self._now = 0  # the number of times the cache has grown

    def add(self, work: Work) -> None:
        work.wait.n_known, work.wait.known_since = self._known(work), self._now
        self._heap.add(work)
        self._by_prompt.add(work)

    def peek(self) -> Work | None:
        return self._heap.peek()

    def discard(self, work: Work) -> None:
        self._heap.discard(work)
        self._by_prompt.discard(work)

    def change(self, work: Work, n_known: int) -> None:
        work.wait.n_known, work.wait.known_since = n_known, self._now
        self._heap.discard(work)
        self._heap.add(work)

    def grown(self, namespace: bytes, tokens: Ints, start: int) -> None:
        """tokens[start:] have just been cached; tokens[:start] were cached before."""
        self._now += 1
        for work in self._by_prompt.beginning_with(namespace, tokens[: start + 1]):
            n = common_prefix(work.request.tokens[: work.n_matchable], tokens)
            if n > work.wait.n_known:
                self.change(work, self._known(work))
