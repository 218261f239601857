"""Sends a request until it has a reply: paced, within the budget, and retried if that may help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from sgc.errors import ContextExceeded
from sgc.runtime.executor.backends.providers.wire.errors import (
    KeyRefused,
    MalformedReply,
    ProviderUnavailable,
    RateLimited,
)
from sgc.runtime.executor.backends.providers.wire.limits import Limits
from sgc.runtime.executor.backends.providers.wire.reply import Replies
from sgc.runtime.executor.backends.retrying import Retries, retrying
from sgc.runtime.executor.interface.seeds import draw_seed

MAX_WAITING_S = 600.0
# After these errors nothing was generated, so nothing is billed.
REFUSED = (RateLimited, KeyRefused, ContextExceeded)
RETRIES = Retries(
    errors=(RateLimited, ProviderUnavailable, MalformedReply),
    max_tries=8,
    first_wait_s=0.5,
    longest_wait_s=60.0,
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a request may use: estimated tokens, and the most dollars it can cost."""

    tokens: int
    ceiling_usd: float = 0.0


class _Patience:
    """How long one request may still wait, for its own retries and while all requests are held."""

    def __init__(self) -> None:
        self._left_s = MAX_WAITING_S

    def allows(self, wait_s: float) -> bool:
        """Subtracts a wait; returns whether it was still allowed."""
        self._left_s -= wait_s
        return self._left_s >= 0


class Attempts:
    """Sends requests of one endpoint. n_retries: how many tries were retries."""

    def __init__(self, limits: Limits, cost_of: Callable[[Replies], float]) -> None:
        self._limits = limits
        self._cost_of = cost_of
        self._n_requests = 0
        self.n_retries = 0

    async def send(
        self,
        once: Callable[[], Awaitable[Replies]],
        estimate: Estimate,
        seed: int,
        may_retry: Callable[[], bool] = lambda: True,
    ) -> Replies:
        """Returns the reply of `once`. may_retry: called after a failure; False ends the tries.

        Raises the last error; BudgetExceeded before a try that might pass the cap.
        """
        number, n_tries = self._n_requests, 0
        self._n_requests += 1
        patience = _Patience()

        async def one_try() -> Replies:
            nonlocal n_tries
            n_tries += 1
            self.n_retries += n_tries > 1
            return await self._try(once, estimate, patience)

        try:
            return await retrying(
                RETRIES,
                one_try,
                goes_on=lambda error, wait_s: (
                    error.retryable and patience.allows(wait_s) and may_retry()
                ),
                draw=lambda n_failed: _drawn(seed, number, n_failed),
                sleep=self._limits.clock.sleep,
            )
        except RETRIES.errors as error:
            error.hint = (
                error.hint or f"given up after {n_tries} {'try' if n_tries == 1 else 'tries'}"
            )
            raise

    async def _try(
        self, once: Callable[[], Awaitable[Replies]], estimate: Estimate, patience: _Patience
    ) -> Replies:
        """One try. If it fails midway, its cost is unknown, and the upper bound counts as spent."""
        limits = self._limits
        async with limits.room:
            await limits.budget.hold(estimate.ceiling_usd)
            cost = 0.0
            try:
                await limits.pace(estimate.tokens)
                await self._while_held(patience)
                cost = estimate.ceiling_usd
                replies = await self._within_time(once)
                if replies.spent.is_known:
                    cost = self._cost_of(replies)
                    limits.correct(estimate.tokens, replies.spent.prompt + replies.spent.output)
                return replies
            except Exception as error:
                limits.hold(getattr(error, "retry_after_s", None) or 0.0)
                cost = 0.0 if isinstance(error, REFUSED) else cost
                raise
            finally:
                limits.budget.settle(estimate.ceiling_usd, cost)

    async def _while_held(self, patience: _Patience) -> None:
        """Waits while the provider accepts no requests; raises RateLimited if that takes too long.

        The wait may grow meanwhile, as other requests are told to wait longer.
        """
        while (held_s := self._limits.held_s) > 0:
            if not patience.allows(held_s):
                error = RateLimited(f"the provider takes no requests for {held_s:.0f} s more")
                error.retry_after_s = held_s
                raise error
            await self._limits.clock.sleep(held_s)

    async def _within_time(self, once: Callable[[], Awaitable[Replies]]) -> Replies:
        timeout_s = self._limits.settings.request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await once()
        except TimeoutError as error:
            raise ProviderUnavailable(f"no reply within {timeout_s:g} s") from error


def _drawn(seed: int, number: int, n_failed: int) -> float:
    """A random number that depends only on the generation's seed and the request."""
    return Random(draw_seed(seed, "", f"backoff/{n_failed - 1}", number % 2**32)).random()
