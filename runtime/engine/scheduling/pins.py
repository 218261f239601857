"""Pins: cached prefixes that are locked for waiting requests.

To make room, prefixes that no request waits for are evicted first; then pins are released, from the
end of the queue; and only then running requests are preempted.
"""

from __future__ import annotations

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.requests.request import Work


class Pins:
    def __init__(self, cache: PrefixCache) -> None:
        self._cache = cache
        self.holders: dict[Work, None] = {}

    def __len__(self) -> int:
        return len(self.holders)

    def pin(self, work: Work) -> int:
        """Locks the cached prefix of a waiting request; returns its length."""
        match = self._cache.match(work.tokens.view[: work.n_matchable], work.request.namespace)
        pin = self._cache.tree.lock(match) if match.length else None
        self.unpin(work)
        if pin is not None:
            work.wait.pin = pin
            self.holders[work] = None
        return match.length

    def unpin(self, work: Work) -> None:
        if work.wait.pin is not None:
            self._cache.tree.unlock(work.wait.pin)
            work.wait.pin = None
            del self.holders[work]

    def unpin_last(self) -> None:
        """Releases the prefix of the waiting requests whose turn comes last."""
        last = max(self.holders, key=lambda work: (-work.wait.n_known, work.wait.known_since))
        pin = last.wait.pin
        for work in [work for work in self.holders if work.wait.pin is pin]:
            self.unpin(work)
