"""When there will be room again: from how quickly requests have ended, and who was told before.

Each client that is refused gets the next place that the measured rate will free. So those that come
back come one after another, at the rate at which there is room, and not all at once. Only so many
places are given away ahead: who asks again and again must not make others wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

N_LAST = 64  # ends that the rate is measured over, and places that are given away ahead
WINDOW_S = 60.0  # ends before it do not count
UNKNOWN_S = 1.0  # before any has ended
LEAST_S, MOST_S = 0.05, 60.0


class Pace:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=N_LAST)
        self._last_place = 0.0

    def ended(self) -> None:
        self._ends.append(self._clock())

    def next_place_s(self) -> float:
        """Seconds until a client that is refused now may have a place."""
        now = self._clock()
        each_s = self._each_s(now)
        place = max(now, self._last_place) + each_s
        self._last_place = min(place, now + N_LAST * each_s)
        return min(max(self._last_place - now, LEAST_S), MOST_S)

    def own_place_s(self) -> float:
        """Seconds until a client that has all its own places taken may have one of them."""
        return min(max(self._each_s(self._clock()), LEAST_S), MOST_S)

    def _each_s(self, now: float) -> float:
        """Between two ends; longer, if the last one was long ago."""
        while self._ends and now - self._ends[0] > WINDOW_S:
            self._ends.popleft()
        if not self._ends:
            return UNKNOWN_S
        return max(now - self._ends[0], 1e-3) / len(self._ends)
