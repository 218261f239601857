"""Bounded waiting: limits how often later requests may pass waiting ones.

Requests that arrive between two steps form a group, without an order among themselves. A group may
be passed by as many later requests as were waiting when it arrived (itself included), plus GRACE;
after that no later request is admitted before it. So, with `a` waiting at its arrival,

    a request is admitted within 2 a + GRACE admissions of its arrival.

First come, first served would need `a`. Cancelled requests only lower the bound. Resuming a
preempted request is not an admission: it had its turn. The bound counts admissions, not seconds, so
it holds on any machine, and a batch that arrives together keeps its best order.
"""

from __future__ import annotations

import numpy as np

from sgc.runtime.engine.ints import NO_INTS, Ints

GRACE = 16
_NEVER = np.iinfo(np.int64).max // 2
_MIN_CAPACITY = 64


class Turns:
    """Counts the passes of each group; groups are numbered by arrival, and empty ones forgotten."""

    def __init__(self) -> None:
        self._first = 0  # number of the group at index 0
        self._n = 0
        self._slack: Ints = NO_INTS  # how many requests may still pass each group
        self._waiting: Ints = NO_INTS  # how many requests of each group wait
        self._is_open = False
        self.n_waiting = 0

    def join(self) -> int:
        """Adds an arriving request; returns its group."""
        if not self._is_open:
            self._open()
        self._waiting[self._n - 1] += 1
        self.n_waiting += 1
        return self._first + self._n - 1

    def close(self) -> None:
        """Closes the current group: later arrivals form a new one."""
        if self._is_open:
            self._is_open = False
            if self._waiting[self._n - 1]:
                self._slack[self._n - 1] = self.n_waiting + GRACE

    def admit(self, group: int) -> None:
        """Records that a request of the group was admitted, past all earlier groups."""
        self._slack[: group - self._first] -= 1
        self.cancel(group)

    def cancel(self, group: int) -> None:
        """Records that a request of the group no longer waits."""
        index = group - self._first
        self._waiting[index] -= 1
        self.n_waiting -= 1
        if self._waiting[index] == 0:
            self._slack[index] = _NEVER

    def due(self) -> int | None:
        """The oldest group that may no longer be passed; None if there is none."""
        if self.n_waiting == 0:
            return None
        is_due = self._slack[: self._n] <= 0
        index = int(is_due.argmax())
        return self._first + index if is_due[index] else None

    def check(self) -> None:
        waiting, slack = self._waiting[: self._n], self._slack[: self._n]
        assert int(waiting.sum()) == self.n_waiting
        assert (waiting >= 0).all()
        assert (slack >= 0).all(), "a request was passed more often than it may be"

    def _open(self) -> None:
        self._is_open = True
        if self._n == len(self._slack):
            self._make_room()
        self._slack[self._n], self._waiting[self._n] = _NEVER, 0
        self._n += 1

    def _make_room(self) -> None:
        """Forgets empty groups at the front, and grows if there are few of them."""
        n_live = self._n - int((self._waiting[: self._n] > 0).argmax()) if self.n_waiting else 0
        capacity = max(_MIN_CAPACITY, 2 * n_live)
        for name in ("_slack", "_waiting"):
            grown = np.empty(capacity, np.int64)
            grown[:n_live] = getattr(self, name)[self._n - n_live : self._n]
            setattr(self, name, grown)
        self._first += self._n - n_live
        self._n = n_live
