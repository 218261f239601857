"""Leaders: of several requests that would write the same cache entry at a provider, one goes first.

A cache entry can be read only once the writer's reply has begun. Ten requests at once would each
pay for the write; after a leader they read. This covers forks, mapped calls and rows, since all of
an endpoint's requests pass here. It knows only hashes of prompts. Waits are bounded, and if a
leader fails or is cancelled, the next request leads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from sgc.runtime.executor.backends.providers.models.models import Caching
from sgc.runtime.executor.backends.providers.wire.limits import Clock
from sgc.runtime.executor.backends.providers.wire.messages import Prefix

MAX_WAIT_S = 60.0  # for a leader; after it a request proceeds alone
MAX_KNOWN = 4096  # prefixes with a known expiry; the oldest is forgotten
_UNIT_S = {"m": 60.0, "h": 3600.0}


class Leaders:
    """The leaders of one endpoint, on its loop. n_waited: requests that waited for another."""

    def __init__(self, caching: Caching | None, clock: Clock) -> None:
        self._is_needed = caching is not None and caching.readable_after == "first reply"
        self._ttl_s = seconds(caching.ttl[0]) if caching is not None and caching.ttl else 0.0
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()  # expiry of readable entries
        self._leading: dict[str, asyncio.Event] = {}
        self.n_waited = 0

    @asynccontextmanager
    async def turn(self, prefixes: Sequence[Prefix]) -> AsyncIterator[Callable[[], None] | None]:
        """Waits while another request writes one of the prefixes. Yields the function that a leader
        calls at its first text; None for a request that is no leader. prefixes: shortest first.
        """
        if not prefixes or not self._is_needed:
            yield None
            return
        await self._wait(prefixes)
        digests = (prefix.digest for prefix in prefixes)
        own = [each for each in digests if each not in self._leading and not self._is_known(each)]
        over = asyncio.Event()
        self._leading.update((digest, over) for digest in own)

        def begun() -> None:
            if not over.is_set():
                self._know(prefixes)
                self._release(own, over)

        try:
            yield begun if own else None
            self._know(prefixes)
        finally:
            self._release(own, over)

    def _is_known(self, digest: str) -> bool:
        return self._until.get(digest, 0.0) > self._clock.now()

    async def _wait(self, prefixes: Sequence[Prefix]) -> None:
        """Waits until the longest prefix being written can be read, or its leader has failed."""
        has_waited = False
        until = self._clock.now() + MAX_WAIT_S
        while (leader := self._leader_of(prefixes)) is not None and self._clock.now() < until:
            self.n_waited += not has_waited
            has_waited = True
            if not await self._within(leader, until - self._clock.now()):
                return

    def _leader_of(self, prefixes: Sequence[Prefix]) -> asyncio.Event | None:
        for prefix in reversed(prefixes):
            if self._is_known(prefix.digest):
                return None  # a shorter prefix is not worth waiting for
            if prefix.digest in self._leading:
                return self._leading[prefix.digest]
        return None

    async def _within(self, over: asyncio.Event, seconds: float) -> bool:
        """Waits for a leader up to `seconds`; returns whether it finished."""
        waiting = asyncio.ensure_future(over.wait())
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
            return over.is_set()
        finally:
            waiting.cancel()
            timer.cancel()

    def _know(self, prefixes: Sequence[Prefix]) -> None:
        """Records that the prefixes were written or read now, which restarts their lifetime."""
        for prefix in prefixes:
            self._until[prefix.digest] = self._clock.now() + self._ttl_s
            self._until.move_to_end(prefix.digest)
        while len(self._until) > MAX_KNOWN:
            self._until.popitem(last=False)

    def _release(self, own: Sequence[str], over: asyncio.Event) -> None:
        for digest in own:
            if self._leading.get(digest) is over:
                del self._leading[digest]
        over.set()


def seconds(ttl: str) -> float:
    """The seconds of a lifetime such as `5m` or `1h`."""
    return float(ttl[:-1]) * _UNIT_S[ttl[-1]]
