"""The waiting requests, and which of them is next. It handles no tensors and no memory.

Preempted requests resume first. Then the policy chooses, within the bound of `turns.py`: once a
request has been passed too often, requests are served in order of arrival.

Policies (SGLang paper, section 3 and its ablations):

* lpm: the longest cached prefix; of equally long ones, the one that was cached first, which would
  be evicted first; of requests with the same prefix, the oldest;
* dfs: depth first through the tree of the waiting prompts;
* fcfs: first come, first served;
* random: a pseudo-random order.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Protocol

from sgc.runtime.engine.ints import Ints, common_prefix
from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import State, Work
from sgc.runtime.engine.scheduling.turns import Turns


class _Order(Protocol):
    """Orders waiting requests; those no longer WAITING may stay a while and are skipped."""

    def add(self, work: Work) -> None: ...
    def peek(self) -> Work | None: ...
    def discard(self, work: Work) -> None:
        """Removes a request, if it is there."""
        ...


class _Heap:
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


class _ByPrompt:
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


class _LongestPrefix:
    """wait.n_known: an upper bound of a request's cached prefix, exact unless some was evicted."""

    def __init__(self, known: Callable[[Work], int]) -> None:
        self._known = known
        self._heap = _Heap(lambda work: (-work.wait.n_known, work.wait.known_since))
        self._by_prompt = _ByPrompt()
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


def _order_of(policy: str, known: Callable[[Work], int]) -> _Order:
    if policy == "lpm":
        return _LongestPrefix(known)
    if policy == "dfs":
        return _ByPrompt()
    return _Heap(_scrambled if policy == "random" else _by_arrival)


def _by_arrival(work: Work) -> tuple[int]:
    return (work.order,)


def _scrambled(work: Work) -> tuple[int]:
    """splitmix64 of the arrival order."""
    z = (work.order + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    return (z ^ (z >> 31),)


class WaitingQueue:
    """known: pins a request's cached prefix and returns its length; called for `lpm` only.

    Raises ValueError for an unknown policy.
    """

    def __init__(self, policy: str, known: Callable[[Work], int]) -> None:
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")
        self.policy = policy
        self._order = _order_of(policy, known)
        self._by_arrival = _Heap(_by_arrival)
        self._preempted = _Heap(_by_arrival)
        self._turns = Turns()

    def __len__(self) -> int:
        """The number of waiting requests, with parked and without preempted ones."""
        return self._turns.n_waiting

    def add(self, work: Work) -> None:
        """Adds an arriving request."""
        work.wait.group = self._turns.join()
        self.wake(work)

    def wake(self, work: Work) -> None:
        """Makes a request wait that arrived, or was parked or preempted."""
        work.state = State.WAITING
        if work.wait.group is None:
            self._preempted.add(work)
            return
        self._by_arrival.add(work)
        if self.policy != "fcfs":
            self._order.add(work)

    def begin(self) -> None:
        """Begins a step: later arrivals form a new group."""
        self._turns.close()

    def peek(self) -> Work | None:
        """The next request; None if none may be admitted now."""
        work = self._preempted.peek()
        if work is not None:
            return work
        due = self._turns.due()
        if due is None:
            return self._by_arrival.peek() if self.policy == "fcfs" else self._order.peek()
        oldest = self._by_arrival.peek()
        # All of the due group may be parked; then no later request is admitted.
        group = None if oldest is None else oldest.wait.group
        return oldest if group is not None and group <= due else None

    @property
    def is_due(self) -> bool:
        """Whether some group may no longer be passed."""
        return self._turns.due() is not None

    def has_less(self, work: Work, n_cached: int) -> bool:
        """Records the cached length of the next request; returns whether it is less than when it
        was chosen, so that another request may be next."""
        if not isinstance(self._order, _LongestPrefix) or work.wait.group is None:
            return False
        if n_cached == work.wait.n_known:
            return False
        is_less = n_cached < work.wait.n_known
        self._order.change(work, n_cached)
        return is_less and not self.is_due

    def admit(self, work: Work) -> None:
        """Records that a request was admitted."""
        self._leave(work, State.RUNNING)
        if work.wait.group is not None:
            self._turns.admit(work.wait.group)
            work.wait.group = None

    def park(self, work: Work) -> None:
        """Parks a request that follows a running one; `wake` brings it back."""
        self._leave(work, State.PARKED)

    def cancel(self, work: Work) -> None:
        """Removes a request, parked or not."""
        self._leave(work, State.DONE)
        if work.wait.group is not None:
            self._turns.cancel(work.wait.group)
            work.wait.group = None

    def grown(self, work: Work, start: int, end: int) -> None:
        """Records that positions start to end of a running request were cached."""
        if isinstance(self._order, _LongestPrefix):
            self._order.grown(work.request.namespace, work.tokens.view[:end], start)

    def check(self) -> None:
        self._turns.check()

    def _leave(self, work: Work, state: State) -> None:
        was_waiting = work.state is State.WAITING
        work.state = state
        if not was_waiting:
            return
        if work.wait.group is None:
            self._preempted.discard(work)
            return
        self._by_arrival.discard(work)
        if self.policy != "fcfs":
            self._order.discard(work)
            work.wait.prompt = None
