"""Decides what runs: which requests to admit, which positions the next step runs, and which request
to preempt when memory is short. It owns no tensors and runs nothing; `waiting.py` decides which
request is next.

A request whose uncached prefix a running request is computing is parked until that part is done, so
no position is computed twice; other requests may pass it. When the pool is short, the youngest
running request is preempted; in the policy `program`, the request of the run with the most left,
never the oldest request. Its results stay in the tree until evicted, and it resumes later from its
prompt and its generated tokens.

The cached prefix of a waiting request is pinned (`pins.py`). So if all requests of a batch are
waiting, each shared prefix is computed once, in any order (the offline optimum: SGLang paper,
theorem 3.1).
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.radix import Match
from sgc.runtime.engine.ints import NO_INTS, IntBuffer, Ints, common_prefix
from sgc.runtime.engine.names import DEFAULT_POLICY
from sgc.runtime.engine.requests.request import EngineError, Generate, State, Work
from sgc.runtime.engine.scheduling.classes import Classes
from sgc.runtime.engine.scheduling.gathers import Gathers
from sgc.runtime.engine.scheduling.inflight import InFlight
from sgc.runtime.engine.scheduling.items import Item, assign_pages, take
from sgc.runtime.engine.scheduling.loads import Loads
from sgc.runtime.engine.scheduling.lookup import Lookup
from sgc.runtime.engine.scheduling.pins import Pins
from sgc.runtime.engine.scheduling.snapshots import Publishing

# How many steps the next request waits for running ones to end before others' pins are released.
MAX_HELD_BACK = 32


class Scheduler(Publishing):
    """chunk_tokens: positions a step may run. shares_in_batch: whether requests wait while a
    running one computes their next positions. headroom_tokens: pages first kept free for each
    running request; later, as many as requests generated on average. lookup: makes guesses. loads:
    loads prefixes from disk. gathers: gathers joined contexts."""

    def __init__(
        self,
        cache: PrefixCache,
        chunk_tokens: int,
        max_running: int,
        *,
        policy: str = DEFAULT_POLICY,
        shares_in_batch: bool = True,
        headroom_tokens: int = 32,
        lookup: Lookup | None = None,
        loads: Loads | None = None,
        gathers: Gathers | None = None,
    ) -> None:
        super().__init__(cache)
        self.chunk_tokens = chunk_tokens
        self.max_running = max_running
        self.running: list[Work] = []  # oldest first
        self.pins = Pins(cache)
        self.waiting = Classes(policy, self.pins.pin)
        self._n_held_back = 0  # steps in a row in which the next request did not fit
        self.inflight = InFlight(shares_in_batch)
        self.n_preempted = 0
        self._headroom = float(headroom_tokens)
        self._lookup = lookup
        self.loads, self.gathers = loads, gathers

    def add(self, work: Work) -> None:
        self.waiting.add(work)

    def take_loaded(self) -> None:
        """Caches what was read from disk, and wakes the requests that waited for it."""
        if not self.loads:
            return
        loaded, woken = self.loads.take()
        for one in loaded:
            self.waiting.grown(one.work, one.start, one.end)
        for work in woken:
            self.waiting.wake(work)

    def take_gathered(self) -> Iterator[tuple[Work, EngineError]]:
        """Wakes requests whose joins are cached now; yields those whose joins could not be."""
        if not self.gathers:
            return
        for work, error in self.gathers.take(self._make_room):
            if error is not None:
                yield work, error
            else:
                self.pins.pin(work)
                self.waiting.wake(work)

    def _make_room(self) -> bool:
        if self._may_unpin():
            self.pins.unpin_last()
            return True
        return bool(self.running)

    def admit(self, now: float) -> list[Work]:
        """Moves waiting requests to running, as far as memory and `max_running` allow."""
        self.waiting.begin()
        self.cache.kept.expire(now)
        admitted: list[Work] = []
        promised: int | None = None
        while len(self.running) < self.max_running:
            work = self.waiting.peek()
            if work is None:
                break
            match = self._match(work)
            if match is None or self.waiting.has_less(work, match.length):
                continue
            if promised is None:
                promised = sum(map(self._n_promised, self.running))
            if not self._enter(work, match, promised):
                break
            promised += self._n_promised(work)
            work.times.admitted_at = work.times.admitted_at or now
            admitted.append(work)
        return admitted

    def choose(self) -> list[Item]:
        """The next step's positions, with their pages: decodes first, then the oldest."""
        items = self._chosen()
        self.snapshots.plan(items)
        return items

    def _chosen(self) -> list[Item]:
        wanted = self._wanted()
        items = wanted if self._lookup is None else self._lookup.guess(wanted)
        pages = self.cache.reserve(sum(item.n_positions for item in items))
        if pages is None:  # no request gives way to guesses
            return self._choose_when_short(wanted)
        at = 0
        for item in items:
            if item.n_positions == 1 and item.is_decode:
                item.work.pages.append(pages.item(at))
                at += 1
            else:
                assign_pages(item, pages[at : at + item.n_positions])
                at += item.n_positions
        return items

    def _wanted(self) -> list[Item]:
        """The positions that the step would run with unlimited memory."""
        decoding: list[Work] = []
        others: list[Work] = []
        for work in self.running:
            (decoding if work.is_decoding else others).append(work)
        items = [Item(work, 1, (), True) for work in decoding[: self.chunk_tokens]]
        budget = self.chunk_tokens - len(items)
        for work in self.waiting.in_turn(others):
            if budget == 0:
                break
            item = take(work, budget)
            items.append(item)
            budget -= item.n_positions
        return items

    def _choose_when_short(self, wanted: list[Item]) -> list[Item]:
        """The items that fit, one by one; the last requests in turn are preempted for others."""
        items: dict[Work, Item] = {}
        for item in wanted:
            # It may have been preempted just now for an older request.
            if item.work.state is State.RUNNING and self._reserve(item, items):
                items[item.work] = item
        return list(items.values())

    def accept(self, work: Work, n_accepted: int) -> None:
        """Keeps the first of a step's guesses; the pages of the others are free again."""
        work.n_computed += n_accepted
        if len(work.pages) > work.n_computed:
            self.cache.release(work.pages.cut(work.n_computed))

    def leave(self, work: Work) -> None:
        """Ends a request and frees what it holds; its results stay cached while there is room."""
        if work.state is State.RUNNING:
            self.publish(work, is_last=True)
            self._update_headroom(work)
            self.waiting.end(work)
            node, n_reusable = work.node, work.request.n_reusable
            ends = [*work.choice_ends, node]
            self._release(work)
            if node is not None and n_reusable is not None:
                self.cache.kept.let_go(node, n_reusable)
            elif node is not None and work.is_gone_back_to:
                self.cache.kept.keep(node, time.monotonic())
            for end in ends:
                if end is not None and n_reusable is not None:
                    self.cache.demote(end, n_reusable)
            work.state = State.DONE
        else:
            self.waiting.cancel(work)
            self.pins.unpin(work)
        self._wake(work, all_of_them=True)

    def commit(self, item: Item) -> None:
        """Called when a running request has progressed."""
        # After the first generated token, decoding adds nothing that others could share.
        if not item.is_decode or item.work.followers:
            self.inflight.update(item.work)
            self._wake(item.work)

    def may_guess(self, n_rows: int) -> bool:
        """Whether a step of so many decoding rows may have guesses."""
        return self._lookup is not None and n_rows < self._lookup.most_positions

    def check(self, held: Ints = NO_INTS) -> None:
        """held: pages beside those of running requests."""
        own = (pages for work in self.running for pages in work.private_pages())
        self.cache.check(held, *own)
        self.snapshots.check(self.running, self.cache.tree.nodes())
        self.inflight.check(self.running)
        self.waiting.check()
        n_locks = 0 if self.gathers is None else self.gathers.n_locks
        self.cache.check_locks(len(self.running) + len(self.pins) + n_locks)
        orders = [work.order for work in self.running]
        assert orders == sorted(set(orders))
        for work in self.running:
            assert work.state is State.RUNNING
            assert work.n_published <= work.n_computed == len(work.pages) <= len(work.tokens)
            assert work.node is not None
            path = self.cache.tree.path_pages(work.node)
            assert np.array_equal(path, work.pages.view[: work.n_published])
            parked = [other for _, other in work.followers if other.state is State.PARKED]
            assert not any(other.followers for other in parked), "someone follows a parked request"

    def _enter(self, work: Work, match: Match, promised: int) -> bool:
        """Admits a request if its pages fit beside those promised to running ones."""
        tree = self.cache.tree
        node = tree.lock(match)
        need = len(work.tokens) - match.length
        if work.trie is not None:
            need += work.trie.n_todo
        need += promised
        has_room = self.cache.make_available(need)
        self._n_held_back = 0 if has_room else self._n_held_back + 1
        while self.cache.n_available < need and self._may_unpin():
            self.pins.unpin_last()
        if self.cache.n_available < need or not self.snapshots.enter(work, match):
            tree.unlock(node)
            assert self.running or self.gathers, (
                "a request that fits the pool was not admitted to an idle engine"
            )
            return False
        work.node, work.n_published, work.n_computed = node, match.length, match.length
        work.pages = IntBuffer(tree.path_pages(node))
        if work.cached_tokens is None:
            cached = min(match.length, work.n_prompt)  # may hold forced text
            work.cached_tokens = max(0, cached - work.n_gathered)
        self.waiting.admit(work)
        work.wait.has_loaded = False
        self.pins.unpin(work)
        if not self.running or self.running[-1].order < work.order:
            self.running.append(work)
        else:
            insort(self.running, work, key=_by_order)
        self.inflight.update(work)
        self._wake(work)  # its followers may find their prefix cached now
        return True

    def _n_promised(self, work: Work) -> int:
        """The pages kept free for a running request: for what it still has to compute, and some for
        what it generates, so that no request is admitted only to be preempted."""
        n_expected = max(1, round(self._headroom) - work.n_generated)
        return work.n_todo_in_all + min(work.n_left, n_expected)

    def _update_headroom(self, work: Work) -> None:
        """Updates the average number of generated tokens when a request ends."""
        if isinstance(work.request.kind, Generate):
            self._headroom += (work.n_generated - self._headroom) / 16

    def _may_unpin(self) -> bool:
        """Whether pins may be released: nothing runs, the wait was too long, or a group is due."""
        is_over = self._n_held_back > MAX_HELD_BACK or not self.running or self.waiting.is_due
        return bool(self.pins) and is_over

    def _match(self, work: Work) -> Match | None:
        """Its cached prefix; None if it was parked, to follow a running request that is computing
        its next position, or until that is loaded."""
        tokens = work.tokens.view[: work.n_matchable]
        while True:
            match = self.cache.match(tokens, work.request.namespace)
            if self.gathers is not None and self.gathers.begin(work, match):
                self._park(work)
                return None
            if match.length == len(tokens):
                return match
            leaders = self.inflight.at(match, tokens.item(match.length))
            if not leaders and self.loads is not None and self.loads.begin(work, match):
                self._park(work)
                return None
            if not leaders:
                return match
            unpublished = [leader for leader in leaders if leader.n_published < leader.n_computed]
            if not unpublished:
                self._follow(work, leaders[0])
                return None
            for leader in unpublished:  # it generated the tokens that the prompt continues with
                self.publish(leader)
                self.inflight.update(leader)

    def _follow(self, work: Work, leader: Work) -> None:
        leader.followers.append((_n_shared(work, leader), work))
        self._park(work)

    def _park(self, work: Work) -> None:
        self.waiting.park(work)
        self.pins.unpin(work)
        # The prefix that the followers of `work` wait for may be cached already: each looks again.
        self._wake(work, all_of_them=True)

    def _wake(self, leader: Work, all_of_them: bool = False) -> None:
        """Wakes followers whose shared part is computed. Of followers that continue with the same
        token only the first is woken, and the others follow it: else each would have to find that
        out."""
        if not leader.followers:
            return
        still: list[tuple[int, Work]] = []
        firsts: dict[tuple[int, int], Work] = {}
        for shared, work in sorted(leader.followers, key=lambda follower: follower[1].order):
            if work.state is not State.PARKED:
                continue
            if not all_of_them and shared > leader.n_computed:
                still.append((shared, work))
                continue
            next_token = work.tokens.at(shared) if shared < work.n_matchable else -1 - work.order
            first = firsts.setdefault((shared, next_token), work)
            if first is work:
                self.waiting.wake(work)
            else:
                first.followers.append((_n_shared(work, first), work))
        leader.followers = still

    def _reserve(self, item: Item, items: dict[Work, Item]) -> bool:
        """Reserves the item's pages, preempting the last requests in turn as needed; False if the
        item's own request was preempted."""
        pages = self.cache.reserve(item.n_positions)
        while pages is None:
            if self.pins:  # including those of requests preempted just now
                self.pins.unpin_last()
                pages = self.cache.reserve(item.n_positions)
                continue
            # Never the oldest while there are others: so it ends, and each request becomes the
            # oldest.
            last = self.waiting.in_turn(self.running[1:] or self.running)[-1]
            items.pop(last, None)
            self._preempt(last)
            if last is item.work:
                return False
            pages = self.cache.reserve(item.n_positions)
        assign_pages(item, pages)
        return True

    def _preempt(self, work: Work) -> None:
        self.n_preempted += 1
        self.publish(work, is_last=True)
        self._release(work)
        self._wake(work, all_of_them=True)
        self.waiting.wake(work)

    def _release(self, work: Work) -> None:
        """Releases pages that are not in the tree, and the lock on those that are."""
        assert work.node is not None
        self.inflight.remove(work)
        del self.running[bisect_left(self.running, work.order, key=_by_order)]
        if len(work.pages) > work.n_published:
            self.cache.release(work.pages.cut(work.n_published))
        if work.trie is not None:
            self.cache.release(work.trie.reset())
        self.snapshots.leave(work)
        self.cache.tree.unlock(work.node)
        work.node = None
        work.pages.clear()
        work.n_computed = work.n_published = 0


def _n_shared(work: Work, leader: Work) -> int:
    """How many of its tokens the leader has computed or will compute."""
    return common_prefix(work.tokens.view[: work.n_matchable], leader.tokens.view)


def _by_order(work: Work) -> int:
    return work.order
