"""Tracks what running requests are about to compute, so that requests that run at the same time
compute each shared position once.

A running request is listed under its locked node and the next token it adds there. A waiting
request whose longest match ends at that node and continues with that token does not compute it
again: it follows the first one.
"""

from __future__ import annotations

from sgc.runtime.engine.cache.radix import Match, Node
from sgc.runtime.engine.requests.request import Work


class InFlight:
    """is_on: if off, every request computes whatever is not cached yet (for ablations)."""

    def __init__(self, is_on: bool = True) -> None:
        self._is_on = is_on
        self._growing: dict[tuple[Node, int], dict[Work, None]] = {}

    def at(self, match: Match, token: int) -> list[Work]:
        """The running requests that compute `token` right after the match."""
        if not match.at_end:
            return []
        return list(self._growing.get((match.node, token), ()))

    def update(self, work: Work) -> None:
        """Lists the request under the place where it now grows."""
        keys = _keys(work) if self._is_on else ()
        if keys == work.keys:
            return
        self.remove(work)
        for key in keys:
            self._growing.setdefault(key, {})[work] = None
        work.keys = keys

    def remove(self, work: Work) -> None:
        for key in work.keys:
            standing = self._growing[key]
            del standing[work]
            if not standing:
                del self._growing[key]
        work.keys = ()

    def check(self, running: list[Work]) -> None:
        assert sum(map(len, self._growing.values())) == sum(len(work.keys) for work in running)
        assert all(work.keys == (_keys(work) if self._is_on else ()) for work in running)


def _keys(work: Work) -> tuple[tuple[Node, int], ...]:
    node = work.node
    if node is None:
        return ()
    if work.n_published < len(work.tokens):
        return ((node, work.tokens.at(work.n_published)),)
    if work.trie is not None:
        return tuple((node, token) for token in work.trie.first_run())
    return ()
