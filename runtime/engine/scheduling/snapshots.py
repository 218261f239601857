"""How running requests put prefixes, and states of recurrent layers, into the tree: which request
has which slot, and after which tokens a snapshot is kept.

A request writes a slot of its own, and first reads the snapshot that its cached prefix ends with.
Snapshots are kept where other requests may continue: at the end of each chunk, before the last
token of a prompt (an equal prompt must run that token), where a prompt departs from the cached
paths, where other requests wait for it, where its shareable part ends, and at a request's end. A
snapshot within a chunk costs another row, as the chunk is cut there. Nothing is copied: a slot
becomes the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.radix import NO_STATE, Match, Node
from sgc.runtime.engine.cache.states import EMPTY
from sgc.runtime.engine.requests.choices import Branch
from sgc.runtime.engine.requests.recurrence import RUNNING, Recurrence
from sgc.runtime.engine.requests.request import Work
from sgc.runtime.engine.scheduling.classes import Classes
from sgc.runtime.engine.scheduling.items import Item

LEAST_APART = 16  # fewer tokens are computed again, unless a request waits for them


class Snapshots:
    """Does nothing for a model without recurrent layers."""

    def __init__(self, cache: PrefixCache) -> None:
        self._states = cache.states

    def enter(self, work: Work, match: Match) -> bool:
        """Gives an admitted request its slot; returns whether there was one."""
        states = self._states
        if states is None:
            return True
        states.touch(match.node)
        reads = EMPTY if match.node.state == NO_STATE else match.node.state
        states.hold(reads)
        own = states.reserve()
        if own is None:
            states.unhold(reads)
            return False
        work.recurrence = Recurrence(own, reads, match.length, _marks(work, match))
        return True

    def plan(self, items: Iterable[Item]) -> None:
        """Reserves slots for the snapshots within the items' chunks."""
        for item in items:
            run = item.work.recurrence
            if run is None or item.n_tokens == 0:
                continue
            if not item.is_decode:
                run.kept = list(self._kept(item.work, run, item.n_tokens))
            run.at = RUNNING

    def ran(self, work: Work) -> None:
        """Records that a request's step has been run."""
        run = work.recurrence
        if run is not None and run.at == RUNNING:
            self._let_go(run)
            run.reads, run.at = run.own, work.n_computed

    def ends(self, work: Work) -> list[int]:
        """Where nodes that are now put into the tree are to end."""
        run = work.recurrence
        within = [] if run is None else [at for at, _ in run.kept if at < work.n_computed]
        return [*within, work.n_computed]

    def give_kept(self, work: Work, node: Node, at: int) -> None:
        """Gives the node, which ends after `at` tokens of the request, the snapshot kept there."""
        run = work.recurrence
        if run is None or self._states is None:
            return
        for end, slot in run.kept:
            if end == at:
                self._states.give(node, slot)
        run.kept = [(end, slot) for end, slot in run.kept if end > at]

    def give_end(self, work: Work) -> None:
        """Makes the states after all computed tokens a snapshot, from which the request continues,
        if there is a slot for its next states."""
        run, states = work.recurrence, self._states
        if run is None or states is None or not self._is_new(work, run):
            return
        if work.n_todo == 0:  # the request continues at once, or leaves
            return
        assert work.node is not None
        slot = states.reserve()
        if slot is None:
            return
        states.give(work.node, run.own, is_weak=work.n_computed < work.n_prompt)
        states.hold(run.own)
        run.reads, run.own = run.own, slot

    def leave(self, work: Work) -> None:
        """Takes the slots back; the states become a snapshot if requests may continue from them."""
        run, states = work.recurrence, self._states
        if run is None or states is None:
            return
        work.recurrence = None
        for _, slot in run.kept:
            states.release(slot)
        most = work.request.n_reusable
        if self._is_new(work, run) and (most is None or work.n_computed <= most):
            assert work.node is not None
            states.give(work.node, run.own)
            return
        self._let_go(run)
        states.release(run.own)

    def check(self, works: Iterable[Work], nodes: Iterable[Node]) -> None:
        if self._states is None:
            return
        runs = [work.recurrence for work in works if work.recurrence is not None]
        own = [run.own for run in runs] + [slot for run in runs for _, slot in run.kept]
        self._states.check(nodes, own)
        self._states.check_held(run.reads for run in runs if run.reads != run.own)

    def _kept(self, work: Work, run: Recurrence, n: int) -> Iterator[tuple[int, int]]:
        assert self._states is not None
        start = work.n_computed
        awaited = {shared for shared, _ in work.followers}
        last = start
        for mark in sorted(mark for mark in run.marks | awaited if start < mark < start + n):
            if mark - last < LEAST_APART and mark not in awaited:
                continue
            slot = self._states.reserve()
            if slot is None:
                return
            last = mark
            yield mark, slot

    def _is_new(self, work: Work, run: Recurrence) -> bool:
        """Whether its own slot holds the states after its last token in the tree, where there is no
        snapshot yet."""
        is_own = run.reads == run.own and run.at == work.n_computed == work.n_published
        return is_own and work.node is not None and work.node.state == NO_STATE

    def _let_go(self, run: Recurrence) -> None:
        if run.reads != run.own and self._states is not None:
            self._states.unhold(run.reads)


def _marks(work: Work, match: Match) -> set[int]:
    """The positions from which other requests may continue."""
    most = work.request.n_reusable
    end = work.n_prompt - work.wants_logits
    marks = {end if most is None else min(end, most), match.n_found}
    return {mark for mark in marks if mark - match.length >= LEAST_APART}


class Publishing:
    """The part of `Scheduler` that caches what was computed."""

    waiting: Classes

    def __init__(self, cache: PrefixCache) -> None:
        self.cache = cache
        self.snapshots = Snapshots(cache)

    def publish(self, work: Work, is_last: bool = False) -> None:
        """Inserts the computed part of the sequence into the tree. is_last: the request computes
        no more of it for now."""
        start = work.n_published
        if start == work.n_computed:
            return
        for end in self.snapshots.ends(work):
            self._insert(work, end)
        if not is_last:
            self.snapshots.give_end(work)
        self.waiting.grown(work, start, work.n_computed)

    def _insert(self, work: Work, end: int) -> None:
        assert work.node is not None
        start = work.n_published
        pages = work.pages.view[start:end]
        node, held = self.cache.insert(work.tokens.view[start:end], pages, work.node)
        if held is not pages:
            pages[:] = held
        self.cache.tree.move_lock(work.node, node)
        work.node, work.n_published = node, end
        self.snapshots.give_kept(work, node, end)

    def publish_choices(self, work: Work) -> None:
        """Inserts the computed part of the choices into the tree, below the prompt."""
        assert work.trie is not None
        assert work.node is not None
        if work.recurrence is not None:
            return  # no request could continue from them
        ends: dict[Branch | None, Node] = {None: work.node}
        run = [branch for branch in work.trie.branches if branch.n_done]
        for branch in run:
            tokens, under = branch.tokens[: branch.n_done], ends[branch.parent]
            ends[branch], _ = self.cache.insert(tokens, branch.pages.cut(0), under)
        work.choice_ends = [ends[branch] for branch in reversed(run)]
