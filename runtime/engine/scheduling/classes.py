"""Waiting requests by priority: a queue for each class, each with the policy and its bound.

A higher class goes first, but not always: when `PASSES` requests of higher classes were admitted
while one of a lower class waited, one of that class is next. So a class that waits gets at least
one admission in `PASSES` + 1, and within a class `turns.py` bounds the wait. Preempted requests
had their turn, and resume before others of any class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sgc.runtime.engine.requests.request import Work
from sgc.runtime.engine.scheduling.waiting import WaitingQueue

PASSES = 8


class Classes:
    """As `WaitingQueue`, which says what policy and known are."""

    def __init__(self, policy: str, known: Callable[[Work], int]) -> None:
        self._policy, self._known = policy, known
        self._queues = {0: self._new()}  # highest first
        self._passed = {0: 0}  # how many of higher classes were admitted while one waited

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, work: Work) -> None:
        priority = work.request.priority
        if priority not in self._queues:
            queues = {**self._queues, priority: self._new()}
            self._queues = dict(sorted(queues.items(), reverse=True))
            self._passed[priority] = 0
        self._of(work).add(work)

    def wake(self, work: Work) -> None:
        self._of(work).wake(work)

    def begin(self) -> None:
        for queue in self._queues.values():
            queue.begin()

    def peek(self) -> Work | None:
        """The next request; None if none may be admitted now."""
        if len(self._queues) == 1:
            return self._queues[0].peek()
        for queue in self._queues.values():
            if (resuming := queue.peek_preempted()) is not None:
                return resuming
        due = [each for each in reversed(self._queues) if self._passed[each] >= PASSES]
        for priority in (*due, *self._queues):
            if (work := self._queues[priority].peek()) is not None:
                return work
        return None

    @property
    def is_due(self) -> bool:
        return any(queue.is_due for queue in self._queues.values())

    def has_less(self, work: Work, n_cached: int) -> bool:
        return self._of(work).has_less(work, n_cached)

    def admit(self, work: Work) -> None:
        is_resuming = work.wait.group is None
        self._of(work).admit(work)
        if is_resuming or len(self._queues) == 1:
            return
        own = work.request.priority
        for priority, queue in self._queues.items():
            if priority < own and len(queue):
                self._passed[priority] += 1
        self._passed[own] = 0

    def end(self, work: Work) -> None:
        self._of(work).end(work)

    def in_turn(self, running: Sequence[Work]) -> Sequence[Work]:
        """Running requests, oldest first, in the order in which they get what is scarce."""
        if len(self._queues) == 1:
            return self._queues[0].in_turn(running)
        found: list[Work] = []
        for priority, queue in self._queues.items():
            found += queue.in_turn([each for each in running if each.request.priority == priority])
        return found

    def park(self, work: Work) -> None:
        self._of(work).park(work)

    def cancel(self, work: Work) -> None:
        self._of(work).cancel(work)

    def grown(self, work: Work, start: int, end: int) -> None:
        for queue in self._queues.values():
            queue.grown(work, start, end)

    def check(self) -> None:
        for queue in self._queues.values():
            queue.check()

    def _new(self) -> WaitingQueue:
        return WaitingQueue(self._policy, self._known)

    def _of(self, work: Work) -> WaitingQueue:
        return self._queues[work.request.priority]
