"""Estimates when there will be room again, from the rate of ended requests and earlier refusals.

Each refused client is given the next place that the measured rate will free. So clients come back
one after another, at the rate at which places become free, and not all at once. Only a bounded
number of places is given away ahead: a client that asks again and again must not make others wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

N_LAST = 64  # ended requests in the measured rate, and places given away ahead
WINDOW_S = 60.0  # earlier ends do not count
UNKNOWN_S = 1.0  # before any request has ended
LEAST_S, MOST_S = 0.05, 60.0


class Pace:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=N_LAST)
        self._last_place = 0.0

    def ended(self) -> None:
        self._ends.append(self._clock())

    def next_place_s(self) -> float:
        """Seconds until a client that is refused now may get a place."""
        now = self._clock()
        each_s = self._each_s(now)
        place = max(now, self._last_place) + each_s
        self._last_place = min(place, now + N_LAST * each_s)
        return min(max(self._last_place - now, LEAST_S), MOST_S)

    def own_place_s(self) -> float:
        """Seconds until a client that uses all of its own places may get one of them."""
        return min(max(self._each_s(self._clock()), LEAST_S), MOST_S)

    def _each_s(self, now: float) -> float:
        """The seconds between two ends; longer if the last end was long ago."""
        while self._ends and now - self._ends[0] > WINDOW_S:
            self._ends.popleft()
        if not self._ends:
            return UNKNOWN_S
        return max(now - self._ends[0], 1e-3) / len(self._ends)
