"""Real bugs to plant, each by name: what goes wrong in engines of this kind, one at a time.

`plant(patch)` puts a bug in; `patch(owner, name, make)` replaces `owner.name` by
`make(the original)` for as long as the test lasts. `test_planted_bugs.py` sees whether the
detectors find them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.pool import PagePool
from sgc.runtime.engine.cache.radix import RadixTree
from sgc.runtime.engine.ints import NO_INTS
from sgc.runtime.engine.model.forward import Row
from sgc.runtime.engine.requests.choices import Branch, ChoiceTrie
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.scheduling.inflight import InFlight
from sgc.runtime.engine.scheduling.scheduler import Scheduler
from sgc.runtime.engine.step import batch
from sgc.runtime.engine.step.core import EngineCore

Patch = Callable[[object, str, Callable], None]
BUGS: dict[str, Callable[[Patch], None]] = {}


def bug(plant: Callable[[Patch], None]) -> None:
    BUGS[plant.__name__.replace("_", " ")] = plant


# -- pool --


@bug
def pages_of_a_request_that_leaves_are_freed_twice(patch: Patch) -> None:
    def make(release):
        def wrong(self, work):
            own = work.pages.view[work.n_published :].copy()
            release(self, work)
            self.cache.release(own)

        return wrong

    patch(Scheduler, "_release", make)


@bug
def duplicates_are_not_freed_on_insert(patch: Patch) -> None:
    def make(_):
        def wrong(self, tokens, pages, under):
            done = self.tree.insert(tokens, pages, under)
            return done.node, done.pages

        return wrong

    patch(PrefixCache, "insert", make)


@bug
def a_page_is_given_out_while_it_is_free(patch: Patch) -> None:
    def make(reserve):
        def wrong(self, n):
            pages = reserve(self, n)
            self.n_free += n > 8
            return pages

        return wrong

    patch(PagePool, "reserve", make)


# -- tree --


@bug
def a_lock_does_not_reach_the_parent(patch: Patch) -> None:
    def make(lock):
        def wrong(self, match):
            node = lock(self, match)
            parent = node.parent
            if parent is not None and parent.parent is not None:
                parent.locks -= 1
                self.n_evictable += len(parent) if parent.locks == 0 else 0
            return node

        return wrong

    patch(RadixTree, "lock", make)


@bug
def a_split_is_off_by_one(patch: Patch) -> None:
    patch(
        RadixTree, "_split", lambda split: lambda self, node, at: split(self, node, max(1, at - 1))
    )


@bug
def a_split_leaves_the_wrong_pages_below(patch: Patch) -> None:
    def make(split):
        def wrong(self, node, at):
            whole = node.pages
            upper = split(self, node, at)
            node.pages = whole[: len(node)]
            return upper

        return wrong

    patch(RadixTree, "_split", make)


@bug
def a_locked_leaf_is_evicted(patch: Patch) -> None:
    patch(
        RadixTree,
        "_is_evictable",
        lambda _: lambda self, node: not node.children and node.parent is not None,
    )


@bug
def evictable_tokens_are_counted_twice(patch: Patch) -> None:
    def make(unlock):
        def wrong(self, node):
            unlock(self, node)
            self.n_evictable += len(node) if node.locks == 0 and node.children else 0

        return wrong

    patch(RadixTree, "unlock", make)


@bug
def what_was_evicted_is_still_matched(patch: Patch) -> None:
    def make(shorten):
        def wrong(self, node, k):
            parent = node.parent
            shorten(self, node, k)
            if node.parent is None:
                parent.children[node.tokens.item(0)] = node

        return wrong

    patch(RadixTree, "_shorten", make)


@bug
def the_parent_is_unlocked_in_the_place_of_the_node(patch: Patch) -> None:
    patch(RadixTree, "unlock", lambda unlock: lambda self, node: unlock(self, node.parent or node))


@bug
def runs_of_a_path_come_in_the_wrong_order(patch: Patch) -> None:
    def make(_):
        def wrong(self, node):
            runs = [node.pages]
            while node.parent is not None:
                node = node.parent
                runs.append(node.pages)
            return np.concatenate(runs)

        return wrong

    patch(RadixTree, "path_pages", make)


@bug
def a_child_outlives_its_parent(patch: Patch) -> None:
    """Only the last node of a path is marked as used."""

    def make(_):
        def wrong(self, node):
            node.stamp = self._clock

        return wrong

    patch(RadixTree, "_touch", make)


@bug
def namespaces_are_ignored(patch: Patch) -> None:
    patch(PrefixCache, "match", lambda match: lambda self, tokens, _: match(self, tokens, b""))


@bug
def a_last_use_takes_what_is_to_be_kept(patch: Patch) -> None:
    patch(RadixTree, "demote", lambda demote: lambda self, node, _: demote(self, node, 0))


# -- scheduler --


@bug
def a_request_refused_after_its_match_stays_locked(patch: Patch) -> None:
    def make(enter):
        def wrong(self, work, match, *rest):
            is_in = enter(self, work, match, *rest)
            if not is_in:
                self.cache.tree.lock(match)
            return is_in

        return wrong

    patch(Scheduler, "_enter", make)


@bug
def what_was_generated_is_not_published(patch: Patch) -> None:
    def make(publish):
        def wrong(self, work):
            if work.n_computed <= work.n_prompt:
                publish(self, work)

        return wrong

    patch(Scheduler, "publish", make)


@bug
def a_preempted_request_keeps_its_pages(patch: Patch) -> None:
    def make(preempt):
        def wrong(self, work):
            release, self.cache.release = self.cache.release, lambda pages: None
            preempt(self, work)
            self.cache.release = release

        return wrong

    patch(Scheduler, "_preempt", make)


@bug
def penalties_forget_at_preemption(patch: Patch) -> None:
    def make(preempt):
        def wrong(self, work):
            preempt(self, work)
            if work.decoding.penalties is not None:
                work.decoding.penalties = Penalties(work.request.tokens, 61)

        return wrong

    patch(Scheduler, "_preempt", make)


@bug
def stop_strings_forget_at_preemption(patch: Patch) -> None:
    def make(preempt):
        def wrong(self, work):
            preempt(self, work)
            if work.decoding.checker is not None:
                work.decoding.checker = type(work.decoding.checker)(work.request.kind.stop)

        return wrong

    patch(Scheduler, "_preempt", make)


@bug
def pages_of_refused_guesses_are_kept(patch: Patch) -> None:
    def make(_):
        def wrong(self, work, n_accepted):
            work.n_computed += n_accepted

        return wrong

    patch(Scheduler, "accept", make)


@bug
def a_refused_guess_counts_as_computed(patch: Patch) -> None:
    def make(accept):
        def wrong(self, work, n_accepted):
            is_short = len(work.pages) > work.n_computed + n_accepted
            accept(self, work, n_accepted + is_short)

        return wrong

    patch(Scheduler, "accept", make)


@bug
def pages_of_choices_are_lost_on_cancel(patch: Patch) -> None:
    def make(reset):
        def wrong(self):
            reset(self)
            return NO_INTS

        return wrong

    patch(ChoiceTrie, "reset", make)


@bug
def last_tokens_of_choices_are_run(patch: Patch) -> None:
    patch(Branch, "n_to_run", lambda _: property(lambda self: len(self.tokens)))


@bug
def a_follower_is_never_woken(patch: Patch) -> None:
    def make(_):
        def wrong(self, leader, all_of_them=False):
            leader.followers = []

        return wrong

    patch(Scheduler, "_wake", make)


@bug
def followers_of_a_cancelled_request_are_forgotten(patch: Patch) -> None:
    def make(leave):
        def wrong(self, work):
            leader_left_early = work.n_computed < work.n_prompt
            followers, work.followers = work.followers, []
            leave(self, work)
            if not leader_left_early:
                work.followers = followers
                self._wake(work, all_of_them=True)

        return wrong

    patch(Scheduler, "leave", make)


@bug
def a_key_stays_in_flight(patch: Patch) -> None:
    def make(_):
        def wrong(self, work):
            work.keys = ()

        return wrong

    patch(InFlight, "remove", make)


# -- batch and counts --


@bug
def a_chunk_continues_from_the_wrong_page(patch: Patch) -> None:
    def make(_):
        def wrong(tokens, start, pages, logits_at):
            if start > 0 and len(tokens) > 1:
                pages = pages.copy()
                pages[start - 1] = pages[0]
            return Row(tokens, start, pages, logits_at)

        return wrong

    patch(batch, "Row", make)


@bug
def positions_of_choices_are_counted_twice(patch: Patch) -> None:
    def make(commit):
        def wrong(self, *args):
            commit(self, *args)
            n_twice = sum(part.n_tokens for item in self._items for part in item.parts)
            self._counters.positions_run += n_twice

        return wrong

    patch(EngineCore, "_commit", make)
