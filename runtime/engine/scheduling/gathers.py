"""Gathers the parts of joined contexts (`requests/joined.py`): computes uncached parts, each in a
sequence of its own, and copies their K and V into the request's sequence.

A request whose joins are not cached is parked until they are. Its parts run like other requests,
before those that wait; each is locked when it ends, and once all are, their pages are copied into
pages of the request's own sequence, which the tree then holds. One request's joins are gathered at
a time, with the joins in its parts, so that several gathers cannot deadlock by their locks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.radix import Match, Node
from sgc.runtime.engine.disk.pages import PageBytes
from sgc.runtime.engine.ints import IntBuffer, Ints
from sgc.runtime.engine.requests.joined import (
    Joins,
    moved,
    n_held,
    namespace_of,
    without_last,
)
from sgc.runtime.engine.requests.request import (
    Commit,
    EngineError,
    EngineRequest,
    Generate,
    State,
    Times,
    Work,
)

COPIED_AT_ONCE = 1024  # tokens; their bytes are in memory twice

_NO_ROOM = EngineError(
    pb.ERROR_CODE_RESOURCE_EXHAUSTED,
    "the pool has no room for the parts of a join and their copies; try again later",
)


@dataclass(frozen=True, slots=True)
class Alone:
    """The sequence that holds a part: the tokens before its join, and the part."""

    tokens: Ints
    joins: Joins


@dataclass(slots=True, eq=False)
class _Gather:
    """works: those that wait for it. parts: in order. ends: the locked nodes of ended parts."""

    works: list[Work]
    parts: list[Work]
    ends: dict[Work, Node] = field(default_factory=dict)
    has_begun: bool = False
    n_computed: int = 0
    error: EngineError | None = None

    @property
    def is_complete(self) -> bool:
        return len(self.ends) == len(self.parts)

    @property
    def waiting(self) -> list[Work]:
        return [work for work in self.works if work.state is State.PARKED]


class Gathers:
    """orders: numbers of arrivals. pages: the model's, for copying."""

    def __init__(self, cache: PrefixCache, orders: Iterator[int], pages: PageBytes) -> None:
        self._cache, self._orders, self._pages = cache, orders, pages
        self._ids = itertools.count(-1, -1)  # no client has these ids
        self._all: dict[tuple[bytes, bytes], _Gather] = {}
        self._by_part: dict[Work, _Gather] = {}
        self._new: list[Work] = []
        self._dropped: list[Work] = []

    def __len__(self) -> int:
        return len(self._all)

    @property
    def n_locks(self) -> int:
        return sum(len(each.ends) for each in self._all.values())

    def begin(self, work: Work, match: Match) -> bool:
        """Gathers a request's joins if needed; returns whether the request waits for them."""
        if match.length >= work.n_joined:
            return False
        tokens = work.tokens.view[: work.n_joined]
        key = (work.request.namespace, tokens.tobytes())
        gather = self._all.get(key)
        if gather is not None:
            gather.works.append(work)
            return True
        gather = self._all[key] = _Gather([work], [*self._parts_of(work.request, tokens)])
        if work.is_part:
            self._start(gather)
        return True

    def take_new(self) -> list[Work]:
        """Parts that are to run now."""
        if self._all and not any(gather.has_begun for gather in self._all.values()):
            self._start(next(iter(self._all.values())))
        new, self._new = self._new, []
        return new

    def end(self, part: Work, error: EngineError | None) -> None:
        """Records that a part has ended and holds no pages any more."""
        gather = self._by_part.pop(part, None)
        if gather is None:
            return
        gather.n_computed += len(part.tokens) - (part.cached_tokens or 0)
        gather.error = gather.error or error
        if error is None:
            match = self._cache.match(part.tokens.view, part.request.namespace)
            assert match.length == len(part.tokens), "a part has ended, and is not cached"
            gather.ends[part] = self._cache.tree.lock(match)

    def take(self, make_room: Callable[[], bool]) -> Iterator[tuple[Work, EngineError | None]]:
        """Copies joins whose parts are complete; yields the requests that waited, with any error.

        make_room: releases pages that can be spared; returns whether some are free now, or will be.
        """
        for key, gather in list(self._all.items()):
            error, works = gather.error, gather.waiting
            if works and error is None:
                if not gather.is_complete:
                    continue
                if self._copy(gather, works[0]):
                    works[0].n_gathered += gather.n_computed
                elif make_room():
                    continue
                else:
                    error = _NO_ROOM
            self._drop(key, gather)
            yield from ((work, error) for work in works)

    def take_dropped(self) -> list[Work]:
        """Running parts that no request waits for any more."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def _start(self, gather: _Gather) -> None:
        gather.has_begun = True
        self._by_part |= dict.fromkeys(gather.parts, gather)
        self._new += gather.parts

    def _drop(self, key: tuple[bytes, bytes], gather: _Gather) -> None:
        del self._all[key]
        for end in gather.ends.values():
            self._cache.tree.unlock(end)
        left = [part for part in gather.parts if self._by_part.pop(part, None) is not None]
        self._dropped += [part for part in left if part not in self._new]
        self._new = [part for part in self._new if part not in left]

    def _parts_of(self, asked: EngineRequest, tokens: Ints) -> Iterator[Work]:
        for alone in parts_of(tokens, asked.joins):
            request = EngineRequest(
                next(self._ids), alone.tokens, Commit(), namespace_of(asked.base, alone.joins),
                owner=asked.owner, joins=alone.joins, base=asked.base,
                adapter=asked.adapter, priority=asked.priority,
            )  # fmt: skip
            times = Times(time.monotonic())
            yield Work(request, next(self._orders), times, IntBuffer(alone.tokens), is_part=True)

    def _copy(self, gather: _Gather, work: Work) -> bool:
        """Caches the request's joins; returns whether there was room."""
        tokens = work.tokens.view[: work.n_joined]
        match = self._cache.match(tokens, work.request.namespace)
        node = self._cache.tree.lock(match)
        pages = self._cache.reserve(len(tokens) - match.length)
        if pages is not None:
            given = self._source(gather, work)[match.length :]
            for at in range(0, len(pages), COPIED_AT_ONCE):
                data = self._pages.read(given[at : at + COPIED_AT_ONCE])
                self._pages.write(pages[at : at + COPIED_AT_ONCE], data)
            self._cache.insert(tokens[match.length :], pages, node)
        self._cache.tree.unlock(node)
        return pages is not None

    def _source(self, gather: _Gather, work: Work) -> Ints:
        """The pages that hold the joins' K and V in the parts' sequences."""
        start = work.request.joins[-1].start
        found = [self._cache.tree.path_pages(gather.ends[part]) for part in gather.parts]
        return np.concatenate([found[0][:start], *(pages[start:] for pages in found)])


def settled(request: EngineRequest, pool_tokens: int) -> EngineRequest:
    """The request as it is run: with its joins, in a namespace of their own; or without them, if
    gathering them takes more than the pool, or log-probabilities in them are asked for."""
    joins = without_last(request.joins, len(request.tokens))
    if not joins:
        return replace(request, joins=())
    asked = request.kind.logprobs if isinstance(request.kind, Generate) else None
    is_logged = asked is not None and asked.start is not None and asked.start <= joins[-1].end
    end = joins[-1].end
    if is_logged or n_held(end, joins) + len(request.tokens) - end + 1 > pool_tokens:
        return replace(request, joins=())
    namespace = namespace_of(request.namespace, joins)
    return replace(request, joins=joins, base=request.namespace, namespace=namespace)


def parts_of(tokens: Ints, joins: Joins) -> list[Alone]:
    """The sequences of the last join's parts: each is the tokens before the join, and a part."""
    join, before = joins[-1], joins[:-1]
    return [
        Alone(
            np.concatenate([tokens[: join.start], tokens[start : part.end]]),
            before + tuple(moved(each, start - join.start) for each in part.joins),
        )
        for start, part in join.spans()
    ]
