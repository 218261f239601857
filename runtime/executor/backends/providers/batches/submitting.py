"""Submits each batch once: if it is not known whether a batch was made, it is searched for.

Before a batch is submitted, the journal has it. If the process, or the connection, dies before the
provider's answer is there, the provider's own list of batches says whether it was made.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from sgc.errors import BackendError, BatchStopped
from sgc.runtime.executor.backends.providers.batches.contract import BatchApi, Entry, Status
from sgc.runtime.executor.backends.providers.batches.journal import Journal, Noted
from sgc.runtime.executor.backends.providers.batches.lines import Reader
from sgc.runtime.executor.backends.providers.batches.watching import until_over
from sgc.runtime.executor.backends.providers.wire.errors import (
    MalformedReply,
    NotFound,
    ProviderUnavailable,
    RateLimited,
)
from sgc.runtime.executor.backends.providers.wire.limits import Clock

# How long a batch may take to be in the list once it was asked for.
SETTLE_S = 30.0
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 300.0
MAX_WAITING_S = 86_400.0  # for room at the provider, or for the provider
MAX_FAILURES = 20  # of the provider, one after the other
NO_BATCHES = "does the server have a batch API, and may the key use it? Else run without --batch"


class Submitting:
    def __init__(
        self, api: BatchApi, journal: Journal, clock: Clock, note: Callable[[str], None]
    ) -> None:
        """note: tells the user a line."""
        self._api, self._journal, self._clock, self._note = api, journal, clock, note
        # Batches that an earlier process began, of which no answer was noted.
        self._doubts = [noted for noted in journal.batches.values() if not noted.batch]

    async def settle_doubts(self) -> None:
        """Finds out what has become of batches that an earlier process began; called before others
        are submitted."""
        while self._doubts:
            noted = self._doubts[0]
            await self._wait_since(noted.key.since)
            await self._persist(noted, partial(self._settle, noted))
            self._doubts.pop(0)

    async def _settle(self, noted: Noted) -> None:
        if not await self._find(noted):
            # A request that is still under way can then no longer submit the deleted file.
            await self._api.discard(noted.key, noted.file)
            if not await self._find(noted):
                self._journal.dropped(noted, "it was not submitted")
                return
        self._note(f"batch {noted.number} had been submitted ({noted.batch})")

    async def submit(self, entries: Sequence[Entry]) -> Noted:
        """Submits a new batch; raises BatchStopped if the provider does not take it."""
        noted = self._journal.begin(entry.id for entry in entries)
        try:
            await self._persist(noted, partial(self._try, noted, entries))
        except BatchStopped:
            raise
        except BackendError as error:
            if not noted.is_doubtful:
                self._journal.dropped(noted, "it was refused")
            is_no = not isinstance(error, RateLimited | ProviderUnavailable)
            raise BatchStopped(
                f"the provider takes no batch of requests: {error.message}",
                hint=NO_BATCHES if is_no else error.hint,
            ) from error
        return noted

    async def _persist(self, noted: Noted, work: Callable[[], Awaitable[None]]) -> None:
        """Does some work for a batch, again while the provider has no room or is away."""
        waited_s, n_failed, wait_s = 0.0, 0, FIRST_WAIT_S
        while True:
            try:
                await work()
                return
            except RateLimited as error:
                told_s = max(error.retry_after_s or 0.0, wait_s)
                if waited_s + told_s > MAX_WAITING_S:
                    raise
            except (ProviderUnavailable, MalformedReply) as error:
                n_failed += 1
                if n_failed >= MAX_FAILURES:
                    raise
                told_s = max(error.retry_after_s or 0.0, wait_s)
                told_s = max(told_s, SETTLE_S) if noted.is_doubtful else told_s
            await self._clock.sleep(told_s)
            waited_s += told_s
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _try(self, noted: Noted, entries: Sequence[Entry]) -> None:
        if noted.is_doubtful:
            if await self._find(noted):
                return
            noted.is_doubtful = False
        if not noted.file and (file := await self._api.upload(noted.key, entries)):
            self._journal.uploaded(noted, file)
        try:
            batch = await self._api.start(noted.key, noted.file, entries)
        except (ProviderUnavailable, MalformedReply):
            noted.is_doubtful = True  # its answer may be all that was lost
            raise
        self._journal.submitted(noted, batch)

    async def _find(self, noted: Noted) -> bool:
        known = {each.batch for each in self._journal.batches.values() if each.batch}
        for batch in await self._api.find(noted.key, noted.left, known):
            if self._api.has_names or await self._has_our_requests(noted, batch):
                self._journal.submitted(noted, batch)
                return True
        return False

    async def _has_our_requests(self, noted: Noted, batch: str) -> bool:
        """Whether a batch has these requests, as its results say once they are there. A batch that
        is gone counts as one without them."""
        self._note(f"batch {noted.number} may be {batch}: waits for its results, which say so")
        try:
            status = await self._until_over(batch)
            reader = Reader(self._api.result, noted.left)
            async for line in self._api.lines(batch, status):
                if reader.read(line) is not None:
                    return True
                if reader.n_strange:
                    break
        except NotFound:
            pass
        return False

    async def _until_over(self, batch: str) -> Status:
        """Waits until a batch has ended; returns its status. Does not wait again for a provider
        that was away for too long."""
        try:
            return await until_over(self._api, batch, self._clock)
        except (RateLimited, ProviderUnavailable, MalformedReply) as error:
            why = f"batch {batch} cannot be followed: {error.message}"
            raise BatchStopped(why, hint=error.hint) from error

    async def _wait_since(self, since: float) -> None:
        left_s = since + SETTLE_S - time.time()
        if left_s > 0:
            await self._clock.sleep(min(left_s, SETTLE_S))
