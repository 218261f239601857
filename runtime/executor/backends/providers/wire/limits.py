"""Limits on requests: how many at once, how many per minute, and how much money.

All of an endpoint's requests share one `Limits`. Time comes from a `Clock`, so that tests need
not wait. Nothing here knows of providers.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import Protocol

from sgc.errors import BudgetExceeded

MINUTE_S = 60.0
# A bucket holds a tenth of a minute's limit, and the rest flows in over a minute, so that no period
# of a minute exceeds the limit.
BURST = 0.1
MAX_HOLD_S = 3600.0  # the longest wait that a provider can impose


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    """Seconds of the monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Bucket:
    """A token bucket: takers wait, in order, for what it lacks."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._capacity = BURST * per_minute
        self._per_s = (1 - BURST) * per_minute / MINUTE_S
        self._clock = clock
        self._level = self._capacity
        self._at = clock.now()

    def take(self, amount: float) -> float:
        """Takes an amount; returns the seconds to wait before using it."""
        now = self._clock.now()
        self._level = min(self._capacity, self._level + (now - self._at) * self._per_s)
        self._at = now
        # A request larger than the bucket waits until the bucket is full, not forever.
        short = min(amount, self._capacity) - self._level
        self._level -= amount
        return max(short, 0.0) / self._per_s

    def correct(self, taken: float, used: float) -> None:
        """Corrects an amount taken to what was used; later takers wait less, or more."""
        self._level += taken - used


class Budget:
    """Dollars spent, and the most that running requests can cost."""

    def __init__(self, cap: float | None) -> None:
        self.cap = cap
        self.spent = 0.0
        self._held = 0.0
        self._n_held = 0
        self._changed = asyncio.Event()

    async def hold(self, ceiling: float) -> None:
        """Reserves dollars, waiting while running requests may free some; raises BudgetExceeded."""
        while self.cap is not None and self.spent + self._held + ceiling > self.cap:
            if not self._n_held:
                raise self.exceeded(ceiling)
            self._changed.clear()
            await self._changed.wait()
        self.take(ceiling, at_any_rate=True)

    def take(self, ceiling: float, at_any_rate: bool = False) -> bool:
        """Reserves dollars if there is room for them now; at_any_rate: also if there is not."""
        fits = self.cap is None or self.spent + self._held + ceiling <= self.cap
        if fits or at_any_rate:
            self._held += ceiling
            self._n_held += 1
        return fits or at_any_rate

    def exceeded(self, ceiling: float) -> BudgetExceeded:
        return BudgetExceeded(
            f"${self.spent:.4f} of ${self.cap:g} are spent, and the next request may cost "
            f"up to ${ceiling:.4f}",
            hint="give a larger --max-cost, or smaller max_tokens",
        )

    def settle(self, ceiling: float, cost: float) -> None:
        """Ends a reservation with the request's actual cost."""
        self._held -= ceiling
        self._n_held -= 1
        self.spent += cost
        self._changed.set()


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """A user's limits; None means no limit.

    max_cost: US dollars, for all requests of the endpoint. request_timeout_s: for one try.
    """

    max_concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    request_timeout_s: float = 600.0
    max_cost: float | None = None


class Limits:
    """The buckets, the budget and the semaphore of one endpoint."""

    def __init__(self, settings: LimitSettings, max_in_flight: int, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.room = asyncio.Semaphore(max_in_flight)
        self.budget = Budget(settings.max_cost)
        self._requests = None if settings.rpm is None else Bucket(settings.rpm, clock)
        self._tokens = None if settings.tpm is None else Bucket(settings.tpm, clock)
        self._held_until = -math.inf

    async def pace(self, n_tokens: int) -> None:
        """Waits until a request of about `n_tokens` tokens may be sent."""
        waits = [0.0]
        if self._requests is not None:
            waits.append(self._requests.take(1))
        if self._tokens is not None:
            waits.append(self._tokens.take(n_tokens))
        if max(waits) > 0:
            await self.clock.sleep(max(waits))

    def hold(self, seconds: float) -> None:
        """Holds all requests for some seconds, because the provider asks for it."""
        until = self.clock.now() + min(seconds, MAX_HOLD_S)
        self._held_until = max(self._held_until, until)

    @property
    def held_s(self) -> float:
        """Seconds until requests may be sent again."""
        return max(self._held_until - self.clock.now(), 0.0)

    def correct(self, guessed: int, used: int) -> None:
        """Corrects an estimate to the tokens that the reply used."""
        if self._tokens is not None:
            self._tokens.correct(guessed, used)
