"""Prefixes that are loaded from disk, and the requests that wait for them.

If a request's match continues on disk, the request is parked while the chunks are read, provided
that reading is quicker than computing (`disk/costs.py`). Other requests pass it, and those that
need the same chunks wait for the same load. Chunks are copied into pages and cached like computed
ones; a load holds no page and no lock. The rest of a load is given up if there is no room for it,
if the prefix that it continues was evicted, or if the disk returns nothing for some seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.radix import Match
from sgc.runtime.engine.disk.keys import CHUNK_TOKENS
from sgc.runtime.engine.ints import Bytes, Ints
from sgc.runtime.engine.requests.request import State, Work

if TYPE_CHECKING:  # its libraries are imported only where there is a disk
    from sgc.runtime.engine.disk.reader import Load
    from sgc.runtime.engine.disk.tier import DiskTier

MAX_COPYING_S = 0.05  # in one step
MAX_SILENCE_S = 5.0  # of a disk


@dataclass(frozen=True, slots=True)
class Loaded:
    """Positions `start` to `end` of a request, which are cached now."""

    work: Work
    start: int
    end: int


@dataclass(slots=True, eq=False)
class _Loading:
    """works: the requests that wait for it; the first one asked for it. start: where its chunks
    begin, in tokens; at: where the next one begins. since: prefixes used after this clock value of
    the tree are not evicted for it."""

    load: Load
    works: list[Work]
    tokens: Ints
    start: int
    at: int
    since: int | None

    @property
    def is_wanted(self) -> bool:
        return any(work.state is not State.DONE for work in self.works)


class Loads:
    def __init__(self, cache: PrefixCache, disk: DiskTier) -> None:
        self._cache, self._disk = cache, disk
        self._all: dict[Load, _Loading] = {}
        self._by_key: dict[bytes, _Loading] = {}
        self._heard = 0.0  # when the disk last returned an awaited chunk

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, work: Work, match: Match, since: int | None = None) -> bool:
        """Begins a load if it is worth it; returns whether the request waits for one, its own or
        another's. A request begins at most one load each time that it is admitted."""
        if work.wait.has_loaded or self._disk.is_behind:
            return False
        # It may use only a part of the last chunk.
        n_useful = -(-work.n_matchable // CHUNK_TOKENS) * CHUNK_TOKENS
        tokens = work.tokens.view[:n_useful]
        keys = self._disk.following(tokens, work.request.namespace, match.length)
        there = self._by_key.get(keys[0]) if keys else None
        if there is not None:
            there.works.append(work)
            return True
        start = match.length // CHUNK_TOKENS * CHUNK_TOKENS
        end = start + CHUNK_TOKENS * len(keys)
        if keys and end - match.length > self._cache.n_available:
            return False  # and there is no room for the whole request either
        work.wait.has_loaded = True
        if not keys or not self._is_worth(work, match.length, start, end):
            return False
        load = self._disk.begin(keys)
        self._heard = self._heard if self._all else load.began
        one = _Loading(load, [work], tokens[:end].copy(), start, start, since)
        self._all[load] = one
        self._by_key |= dict.fromkeys(keys, one)  # the latest of overlapping loads
        return True

    def is_loading(self, work: Work) -> bool:
        return any(work in one.works for one in self._all.values())

    def take(self) -> tuple[list[Loaded], list[Work]]:
        """Caches newly read chunks; returns them, and the parked requests whose load has ended."""
        loaded: list[Loaded] = []
        woken: list[Work] = []
        until = time.perf_counter() + MAX_COPYING_S
        for one in list(self._all.values()):
            before = one.at
            if not one.is_wanted or self._advance(one, until):
                self._end(one)
                woken += [work for work in one.works if work.state is State.PARKED]
            if one.at > before:
                loaded.append(Loaded(one.works[0], before, one.at))
        return loaded, woken

    def close(self) -> None:
        """Gives up all loads."""
        for one in list(self._all.values()):
            self._end(one)

    def _is_worth(self, work: Work, n_matched: int, start: int, end: int) -> bool:
        n_todo = len(work.tokens) - n_matched
        n_left = n_todo - (min(end, work.n_matchable) - n_matched)
        return self._disk.costs.is_worth_loading(end - start, n_todo, n_left)

    def _advance(self, one: _Loading, until: float) -> bool:
        """Caches chunks that were read; returns whether there are no more."""
        is_read = one.load.is_read  # asked first: later chunks would be missed
        while (now := time.perf_counter()) < until:
            data = self._disk.take(one.load)
            if data is None:
                return is_read or now - self._heard > MAX_SILENCE_S
            self._heard = now
            if not self._insert(one, data):
                return True
            one.at += CHUNK_TOKENS
        return False

    def _insert(self, one: _Loading, data: Bytes) -> bool:
        """Caches the uncached part of the next chunk; returns whether that succeeded."""
        tokens = one.tokens[: one.at + CHUNK_TOKENS]
        match = self._cache.match(tokens, one.works[0].request.namespace)
        if match.length < one.at:
            return False
        n = len(tokens) - match.length
        if n == 0:
            return True
        node = self._cache.tree.lock(match)
        pages = self._reserve(n, one.since)
        if pages is not None:
            self._disk.pages.write(pages, data)
            self._cache.insert(tokens[match.length :], pages, node)
        self._cache.tree.unlock(node)
        return pages is not None

    def _reserve(self, n: int, since: int | None) -> Ints | None:
        if since is None:
            return self._cache.reserve(n)
        pages = self._cache.reserve_unused(n, since)
        if len(pages) == n:
            return pages
        self._cache.release(pages)
        return None

    def _end(self, one: _Loading) -> None:
        del self._all[one.load]
        for key in one.load.keys:
            if self._by_key.get(key) is one:
                del self._by_key[key]
        n_loaded = one.at - one.start
        if n_loaded:
            self._disk.costs.loads.note(n_loaded, time.perf_counter() - one.load.began)
        self._disk.end(one.load, n_loaded)
