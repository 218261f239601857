"""Retries a request, after a wait, if that may help.

All backends use it; each has its own `Retries` with the errors to retry and the waits.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sgc.errors import BackendError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retries:
    """errors: those after which a retry may help. first_wait_s: the longest wait after the first
    failure, doubled with each one, up to longest_wait_s. least: the smallest share of that wait."""

    errors: tuple[type[BackendError], ...]
    max_tries: int
    first_wait_s: float
    longest_wait_s: float = math.inf
    least: float = 0.0

    def wait_s(self, n_failed: int, drawn: float) -> float:
        """The wait after `n_failed` failures. drawn: a random number from 0 to 1."""
        longest = min(self.first_wait_s * 2.0 ** (n_failed - 1), self.longest_wait_s)
        return longest * (self.least + (1 - self.least) * drawn)


async def retrying(
    retries: Retries,
    once: Callable[[], Awaitable[T]],
    goes_on: Callable[[Any, float], bool],
    draw: Callable[[int], float] = lambda n_failed: random.random(),
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The result of `once`; raises the last error.

    goes_on: called with each error but the last and the wait until the next try; False ends it. An
    error may require a longer wait (`retry_after_s`).
    """
    for n_tries in itertools.count(1):
        try:
            return await once()
        except retries.errors as error:
            if n_tries == retries.max_tries:
                raise
            told_s = getattr(error, "retry_after_s", None) or 0.0
            wait_s = max(told_s, retries.wait_s(n_tries, draw(n_tries)))
            if not goes_on(error, wait_s):
                raise
        await sleep(wait_s)
    raise AssertionError("unreachable")
