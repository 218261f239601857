"""A provider's model through its batch API: requests wait for others, and cost half.

Requests are lowered, checked and read as by `ProviderBackend`; only their way differs. Nothing is
streamed, and no request waits for another one to write a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from sgc.runtime.executor.backends.providers.backend import Api, ProviderBackend
from sgc.runtime.executor.backends.providers.batches.asks import Wanted
from sgc.runtime.executor.backends.providers.batches.contract import BatchApi, Json
from sgc.runtime.executor.backends.providers.batches.identity import digest_of
from sgc.runtime.executor.backends.providers.batches.journal import Journal
from sgc.runtime.executor.backends.providers.batches.stages import Stages, Surroundings
from sgc.runtime.executor.backends.providers.caches.cache_write_leader import Leaders
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.models.prices import Prices
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.reply import Replies
from sgc.runtime.executor.backends.providers.wire.safe_stream import SafeStream
from sgc.runtime.executor.loops.idle import Idle


@dataclass(frozen=True, slots=True)
class Batching:
    """How a job's requests go through batches.

    journal: the file that remembers them; idle: of the loop that rows run on; note: tells the user
    a line; sync: makes the job's log survive a crash of the machine, before each batch.
    asks_errors_again: requests that failed in earlier runs are asked again.
    """

    journal: Path
    idle: Idle
    note: Callable[[str], None]
    sync: Callable[[], None]
    asks_errors_again: bool = False


class BodyApi(Api, Protocol):
    def body(self, lowered: Lowered, facts: Facts) -> Json: ...

    def replies(self, found: Any, n: int) -> Replies: ...


class BatchedBackend(ProviderBackend):
    """A `Backend` of one model. prices: at once, without the discount of batches."""

    def __init__(
        self,
        api: BodyApi,
        batches: BatchApi,
        facts: Facts,
        settings: LimitSettings,
        batching: Batching,
        prices: Prices | None,
        settings_digest: str,
    ) -> None:
        given = prices or facts.prices
        reduced = None if given is None else given.times(facts.batch_price)
        super().__init__(api, facts, settings, reduced, settings_digest=settings_digest)
        self._body_api = api
        self.leaders = Leaders(None, self.limits.clock)
        journal = Journal(batching.journal, f"{facts.model} {self.scope}")
        self.stages = Stages(
            batches,
            Surroundings(
                journal, self.limits.budget, self.limits.clock, batching.idle, batching.note,
                batching.sync, batching.asks_errors_again,
            ),
        )  # fmt: skip

    async def _ask(
        self,
        lowered: Lowered,
        seed: int,
        shown: SafeStream | None,
        begun: Callable[[], None] | None,
    ) -> Replies:
        plain = replace(lowered, is_streamed=False)
        wanted = Wanted(
            digest_of(plain, seed),
            lambda: self._body_api.body(plain, self.facts),
            lambda found: self._body_api.replies(found, plain.n),
            self.estimate(plain).ceiling_usd,
        )
        return await self.stages.ask(wanted, lambda replies: self.cost(replies) or 0.0)

    @property
    def outstanding(self) -> list[str]:
        """Batches that go on at the provider."""
        return self.stages.outstanding

    async def cancel_batches(self, tell: Callable[[str], None]) -> None:
        """Cancels them, and tells what has become of each."""
        await self.stages.cancel(tell)

    async def close(self) -> None:
        """Closes the connections; batches go on at the provider."""
        try:
            await self.stages.close()
        finally:
            await super().close()
