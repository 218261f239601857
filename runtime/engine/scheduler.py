"""Decides what runs: whom to admit, which positions the next step takes, who gives way when
memory is short. It owns no tensors and runs nothing.

First come, first served, with two twists. A request whose uncached prefix is being computed by
a running one is parked until that part is done, so no position is computed twice; others may
pass it. And when the pool is short, the youngest running request gives way: what it computed
stays in the tree until evicted, and it goes on later from its prompt and what it generated.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np

from sgc.runtime.engine.cache import IntBuffer, PrefixCache
from sgc.runtime.engine.choices import Branch, ChoiceTrie
from sgc.runtime.engine.inflight import InFlight
from sgc.runtime.engine.radix import Ints, Match, Node, common_prefix
from sgc.runtime.engine.request import State, Work


@dataclass(frozen=True, slots=True)
class BranchPart:
    """`n_tokens` positions of a choice branch, from `start`."""

    branch: Branch
    start: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Item:
    """What a step runs of one request: positions of its sequence, then of its choices."""

    work: Work
    n_tokens: int
    parts: tuple[BranchPart, ...] = ()

    @property
    def n_positions(self) -> int:
        if not self.parts:
            return self.n_tokens
        return self.n_tokens + sum(part.n_tokens for part in self.parts)


class Scheduler:
    """chunk_tokens: positions a step may run."""

    def __init__(self, cache: PrefixCache, chunk_tokens: int, max_running: int) -> None:
        self.cache = cache
        self.chunk_tokens = chunk_tokens
        self.max_running = max_running
        self.running: list[Work] = []  # oldest first
        self.inflight = InFlight()
        self.n_preempted = 0
        self._waiting: list[tuple[int, Work]] = []  # a heap by arrival; cancelled ones stay a while
        self._n_stale = 0

    def add(self, work: Work) -> None:
        work.state = State.WAITING
        heapq.heappush(self._waiting, (work.order, work))

    def admit(self, now: float) -> list[Work]:
        """Moves waiting requests to running while memory and places last."""
        admitted: list[Work] = []
        if not self._waiting:
            return admitted
        promised = sum(work.n_todo_in_all for work in self.running)
        while self._waiting and len(self.running) < self.max_running:
            work = self._waiting[0][1]
            match = self._match(work) if work.state is State.WAITING else None
            if match is None:
                heapq.heappop(self._waiting)
                self._n_stale -= work.state is State.DONE
                continue
            if not self._enter(work, match, promised):
                break
            heapq.heappop(self._waiting)
            promised += work.n_todo_in_all
            work.admitted_at = work.admitted_at or now
            admitted.append(work)
        return admitted

    def choose(self) -> list[Item]:
        """The next step's positions, their pages reserved: decodes first, then the oldest."""
        works = self._in_turn()
        items = self._wanted(works)
        pages = self.cache.reserve(sum(item.n_positions for item in items))
        if pages is None:
            return self._choose_when_short(works)
        at = 0
        for item in items:
            _hand_out(item, pages[at : at + item.n_positions])
            at += item.n_positions
        return items

    def _in_turn(self) -> list[Work]:
        """The running requests, those that decode first."""
        decoding: list[Work] = []
        others: list[Work] = []
        for work in self.running:
            (decoding if work.is_decoding else others).append(work)
        return decoding + others

    def _wanted(self, works: list[Work]) -> list[Item]:
        """What the step would run if memory were no matter."""
        items: list[Item] = []
        budget = self.chunk_tokens
        for work in works:
            if budget == 0:
                break
            item = self._take(work, budget)
            items.append(item)
            budget -= item.n_positions
        return items

    def _choose_when_short(self, works: list[Work]) -> list[Item]:
        """As `choose`, one request at a time, the youngest giving way to the others."""
        items: dict[Work, Item] = {}
        budget = self.chunk_tokens
        for work in works:
            if budget == 0:
                break
            if work.state is not State.RUNNING:
                continue  # gave way to an older one just now
            item = self._take(work, budget)
            if self._reserve(item, items):
                items[work] = item
                budget -= item.n_positions
        return list(items.values())

    def publish(self, work: Work) -> None:
        """Puts the computed part of the sequence into the tree, for everyone."""
        assert work.node is not None
        start, end = work.n_published, work.n_computed
        if start == end:
            return
        pages = work.pages.view[start:end]
        node, held = self.cache.insert(work.tokens.view[start:end], pages, work.node)
        if held is not pages:
            pages[:] = held
        self.cache.tree.move_lock(work.node, node)
        work.node, work.n_published = node, end

    def publish_choices(self, work: Work) -> None:
        """Puts every choice into the tree, below the prompt."""
        assert work.trie is not None
        assert work.node is not None
        ends: dict[Branch | None, Node] = {None: work.node}
        for branch in work.trie.branches:
            under = ends[branch.parent]
            ends[branch], _ = self.cache.insert(branch.tokens, branch.pages.cut(0), under)

    def leave(self, work: Work) -> None:
        """Frees what the request holds; what it computed stays cached while there is room."""
        if work.state is State.RUNNING:
            self.publish(work)
            self._let_go(work)
        elif work.state is State.WAITING:
            self._n_stale += 1
        work.state = State.DONE
        self._sweep()
        self._wake(work, all_of_them=True)

    def commit(self, work: Work) -> None:
        """To be called when a running request has progressed."""
        self.inflight.update(work)
        self._wake(work)

    def check(self) -> None:
        self.cache.check(*(pages for work in self.running for pages in work.private_pages()))
        self.inflight.check(self.running)
        orders = [work.order for work in self.running]
        assert orders == sorted(set(orders))
        for work in self.running:
            assert work.state is State.RUNNING
            assert work.n_published <= work.n_computed == len(work.pages) <= len(work.tokens)
            assert work.node is not None
            path = self.cache.tree.path_pages(work.node)
            assert np.array_equal(path, work.pages.view[: work.n_published])

    def _enter(self, work: Work, match: Match, promised: int) -> bool:
        """Admits a request if its pages can be had beside those promised to the running."""
        tree = self.cache.tree
        node = tree.lock(match)
        need = len(work.tokens) - match.length
        if work.trie is not None:
            need += work.trie.n_todo
        # Room for each running request to decode one more, against admitting in vain.
        if self.cache.n_available < need + promised + len(self.running):
            tree.unlock(node)
            assert self.running, "a request that fits the pool was not admitted to an idle engine"
            return False
        work.node, work.n_published, work.n_computed = node, match.length, match.length
        work.pages = IntBuffer(tree.path_pages(node))
        if work.cached_tokens is None:
            work.cached_tokens = match.length
        work.state = State.RUNNING
        if not self.running or self.running[-1].order < work.order:
            self.running.append(work)
        else:
            insort(self.running, work, key=_by_order)
        self.inflight.update(work)
        return True

    def _match(self, work: Work) -> Match | None:
        """What the cache has of it; None if it is parked, to follow a running request that is
        computing what it needs next."""
        tree = self.cache.tree
        tokens = work.tokens.view[: work.n_matchable]
        while True:
            match = tree.match(tokens, tree.root(work.request.namespace))
            if match.length == len(tokens):
                return match
            leaders = self.inflight.at(match, tokens.item(match.length))
            if not leaders:
                return match
            unpublished = [leader for leader in leaders if leader.n_published < leader.n_computed]
            if not unpublished:
                self._follow(work, leaders[0])
                return None
            for leader in unpublished:  # it generated what is asked for
                self.publish(leader)
                self.inflight.update(leader)

    def _sweep(self) -> None:
        if 2 * self._n_stale > len(self._waiting):
            self._waiting = [e for e in self._waiting if e[1].state is State.WAITING]
            heapq.heapify(self._waiting)
            self._n_stale = 0

    def _follow(self, work: Work, leader: Work) -> None:
        shared = common_prefix(work.tokens.view[: work.n_matchable], leader.tokens.view)
        work.state = State.PARKED
        leader.followers.append((shared, work))

    def _wake(self, leader: Work, all_of_them: bool = False) -> None:
        if not leader.followers:
            return
        still: list[tuple[int, Work]] = []
        for shared, work in leader.followers:
            if work.state is not State.PARKED:
                continue
            if all_of_them or shared <= leader.n_computed:
                self.add(work)
            else:
                still.append((shared, work))
        leader.followers = still

    def _take(self, work: Work, budget: int) -> Item:
        """As much of a request as the budget allows."""
        n_todo = work.n_todo
        n_tokens = min(n_todo, budget)
        if work.trie is None or n_tokens < n_todo:
            return Item(work, n_tokens)
        return Item(work, n_tokens, self._parts(work.trie, budget - n_tokens))

    @staticmethod
    def _parts(trie: ChoiceTrie, budget: int) -> tuple[BranchPart, ...]:
        parts: list[BranchPart] = []
        for branch in trie.pending():
            if budget == 0:
                break
            n = min(len(branch.tokens) - branch.n_done, budget)
            parts.append(BranchPart(branch, branch.n_done, n))
            budget -= n
        return tuple(parts)

    def _reserve(self, item: Item, items: dict[Work, Item]) -> bool:
        """Gives the item its pages, taking them from the youngest if need be; False if that
        is the item's own request."""
        pages = self.cache.reserve(item.n_positions)
        while pages is None:
            youngest = self.running[-1]
            items.pop(youngest, None)
            self._preempt(youngest)
            if youngest is item.work:
                return False
            pages = self.cache.reserve(item.n_positions)
        _hand_out(item, pages)
        return True

    def _preempt(self, work: Work) -> None:
        self.n_preempted += 1
        self.publish(work)
        self._let_go(work)
        self._wake(work, all_of_them=True)
        self.add(work)

    def _let_go(self, work: Work) -> None:
        """Releases pages that are not in the tree, and the lock on those that are."""
        assert work.node is not None
        self.inflight.remove(work)
        del self.running[bisect_left(self.running, work.order, key=_by_order)]
        if len(work.pages) > work.n_published:
            self.cache.release(work.pages.cut(work.n_published))
        if work.trie is not None:
            self.cache.release(work.trie.reset())
        self.cache.tree.unlock(work.node)
        work.node = None
        work.pages.clear()
        work.n_computed = work.n_published = 0


def _hand_out(item: Item, pages: Ints) -> None:
    """Gives the item's positions their pages, in order."""
    item.work.pages.extend(pages[: item.n_tokens])
    at = item.n_tokens
    for part in item.parts:
        part.branch.pages.extend(pages[at : at + part.n_tokens])
        at += part.n_tokens


def _by_order(work: Work) -> int:
    return work.order
