"""Polls a batch until it has ended, with growing waits; a provider that is away for a while is
waited for."""

from __future__ import annotations

from sgc.errors import BackendError, BatchStopped
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
MAX_BATCH_S = 172_800.0  # providers promise a day


class Away:
    """How long a provider has not answered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None

    def answered(self) -> None:
        self._since = None

    def wait_s(self, error: BackendError, least_s: float) -> float:
        """The seconds until it is asked again; raises the error if it is away for too long."""
        wait_s = max(getattr(error, "retry_after_s", None) or 0.0, least_s)
        now = self._clock.now()
        self._since = now if self._since is None else self._since
        if now + wait_s - self._since > MAX_AWAY_S:
            raise error
        return wait_s


async def until_over(api: BatchApi, batch: str, clock: Clock) -> Status:
    """The status of a batch that has ended. Raises the provider's error if it is not answered, and
    BatchStopped if the batch does not end."""
    poll_s, away, start_s = FIRST_POLL_S, Away(clock), clock.now()
    while clock.now() - start_s < MAX_BATCH_S:
        wait_s = poll_s
        try:
            status = await api.look(batch)
            if status.is_over:
                return status
            away.answered()
        except (RateLimited, ProviderUnavailable, MalformedReply) as error:
            wait_s = away.wait_s(error, poll_s)
        await clock.sleep(wait_s)
        poll_s = min(GROWTH * poll_s, LONGEST_POLL_S)
    raise BatchStopped(
        f"batch {batch} has not ended after {MAX_BATCH_S / 3600:.0f} hours",
        hint="the same command looks again, with --cancel-batches it cancels it",
    )
