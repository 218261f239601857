"""Polls a batch until it has ended, with growing waits; a provider that is away for a while is
waited for."""

from __future__ import annotations

from sgc.runtime.executor.backends.providers.batches.contract import BatchApi, Status
from sgc.runtime.executor.backends.providers.wire.errors import (
    MalformedReply,
    ProviderUnavailable,
    RateLimited,
)
from sgc.runtime.executor.backends.providers.wire.limits import Clock

FIRST_POLL_S = 5.0
LONGEST_POLL_S = 120.0
GROWTH = 1.5
MAX_AWAY_S = 3600.0  # without an answer to a poll


async def until_over(api: BatchApi, batch: str, clock: Clock) -> Status:
    """The status of a batch that has ended. Raises the provider's error if it is not answered."""
    wait_s, away_since = FIRST_POLL_S, None
    while True:
        try:
            status = await api.look(batch)
            if status.is_over:
                return status
            away_since, told_s = None, 0.0
        except (RateLimited, ProviderUnavailable, MalformedReply) as error:
            away_since = clock.now() if away_since is None else away_since
            told_s = error.retry_after_s or 0.0
            if clock.now() + max(told_s, wait_s) - away_since > MAX_AWAY_S:
                raise
        await clock.sleep(max(told_s, wait_s))
        wait_s = min(GROWTH * wait_s, LONGEST_POLL_S)
