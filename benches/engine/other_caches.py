"""Caches with which benches and tests compare the engine's radix tree: settings of an
`EngineCore`, by name."""

from __future__ import annotations

import itertools
from typing import Any

from list_cache import ListCache

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.radix import Match, Node, RadixTree
from sgc.runtime.engine.ints import NO_INTS, Ints


class _Apart(RadixTree):
    """A tree whose roots have unique names, so that no request finds them again."""

    def __init__(self) -> None:
        super().__init__()
        self._names = itertools.count()

    def lock(self, match: Match) -> Node:
        if match.node.parent is None and match.node.locks == 0:
            self._roots[b"%d" % next(self._names)] = match.node
        return super().lock(match)


class NoCache(PrefixCache):
    """A cache that reuses nothing: each request has a root of its own."""

    def __init__(self, pool_tokens: int) -> None:
        super().__init__(pool_tokens, _Apart())

    def match(self, tokens: Ints, namespace: bytes) -> Match:
        return Match(Node(NO_INTS, NO_INTS, None), 0, 0)


def list_cache(pool_tokens: int) -> PrefixCache:
    return PrefixCache(pool_tokens, ListCache(pool_tokens))  # type: ignore[arg-type]


CACHES: dict[str, dict[str, Any]] = {
    "radix": {},
    # Sharing in the batch needs the nodes of a tree.
    "list": {"make_cache": list_cache, "shares_in_batch": False},
    "none": {"make_cache": NoCache},
}
