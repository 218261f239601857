"""A clock that jumps instead of waiting."""

from __future__ import annotations

import asyncio


class JumpingClock:
    """Sleepers wake in the order of their times. sleeps: what was waited for, as it was asked."""

    def __init__(self) -> None:
        self.time = 0.0
        self.sleeps: list[float] = []
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        woken = asyncio.Event()
        self._sleepers.append((self.time + seconds, len(self.sleeps), woken))
        for _ in range(20):  # lets all others come to where they sleep too
            await asyncio.sleep(0)
        self._wake_next()
        await woken.wait()

    def _wake_next(self) -> None:
        at, _, woken = min(self._sleepers)
        self._sleepers.remove((at, _, woken))
        self.time = max(self.time, at)
        woken.set()
