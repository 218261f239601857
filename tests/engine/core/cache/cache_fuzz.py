"""Random operations on tree and pool, as requests do them, held against `NaiveCache`.

`run(seed, n_operations)` raises AssertionError at the first difference. Short in the tests,
long in tools/fuzz_cache.py. Numbers come from numpy's generator, in blocks, for speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from engine.core.cache.naive_cache import NaiveCache, Place
from other_caches import CACHES

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.cache.radix import Node, RadixTree
from sgc.runtime.engine.ints import Ints

EPISODES = (50, 200, 1000)  # operations on one cache
POOLS = (1, 9, 19, 19, 40, 200)


class Dice:
    """Makes choices of the numbers it is given; always the first one when they are used up."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = iter(numbers)

    def __call__(self, n: int) -> int:
        """0 … n-1"""
        return next(self._numbers, 0) % n

    def some(self, n: int, below: int) -> list[int]:
        return [self(below) for _ in range(n)]


def endless(seed: int) -> Iterator[int]:
    rng = np.random.default_rng(seed)
    while True:
        yield from rng.integers(0, 2**31, 4096).tolist()


def _watched(tree: RadixTree, seen: list[Ints]) -> None:
    """Notes what is evicted, also where `PrefixCache` does it on the way."""
    evict = tree.evict

    def watching(n: int, until: int | None = None, tells: bool = True) -> Ints:
        seen.append(evict(n, until, tells))
        return seen[-1]

    tree.evict = watching  # type: ignore[method-assign]


class CacheFuzz:
    """One episode: a cache of a random size, and prompts over a random small alphabet."""

    def __init__(self, dice: Dice, kind: str = "radix") -> None:
        self.dice, self.kind = dice, kind
        n_pages = POOLS[dice(len(POOLS))]
        self.n_tokens, self.longest = 1 + dice(4), 2 + dice(max(2, n_pages // 3))
        self.spaces = [b"", b"one", b"two"][: 1 + dice(3)]
        self.cache = CACHES[kind].get("make_cache", PrefixCache)(n_pages)
        self.naive = NaiveCache(n_pages, len(self.spaces), keeps_order=kind == "radix")
        self.max_held = 1 + dice(8)
        self.held: list[tuple[Node, Place, list[Place]]] = []  # node, root, path
        self.apart: list[int] = []  # pages reserved and not given to the tree
        self.evicted: list[Ints] = []
        _watched(self.cache.tree, self.evicted)

    def run(self, n_operations: int) -> None:
        every = max(1, self.naive.n_pages // 10)  # of the checks of everything
        names, dice = OPERATIONS, self.dice
        for i in range(n_operations):
            getattr(self, names[dice(len(names))])()
            self._compare()
            if i % every == 0:
                self.check()
        self.end()

    def check(self) -> None:
        """Everything that can be compared."""
        self.cache.check(np.array(self.apart, np.int64))
        self.cache.check_locks(len(self.held))
        assert sorted(self.cache.tree.all_pages().tolist()) == sorted(self.naive.of_page)
        for node, _, path in self.held:
            assert self.cache.tree.path_pages(node).tolist() == [place.page for place in path]

    def end(self) -> None:
        """When everyone has left, everything can be had back."""
        while self.held:
            self.unlock()
        self.flush()
        self.cache.release(np.array(self.apart, np.int64))
        assert self.cache.pool.n_free == self.naive.n_pages, "pages were lost"
        assert self.cache.tree.n_tokens == 0

    # -- operations --

    def match(self) -> None:
        """Finds what is there, and changes nothing."""
        space, tokens = self._prompt()
        found = self.cache.match(np.array(tokens), self.spaces[space])
        path = self.naive.known(space, tokens)
        assert found.length == len(path), "not the longest known prefix"
        pages = self.cache.tree.path_pages(found.node)[: found.length]
        assert pages.tolist() == [place.page for place in path]

    def begin(self) -> None:
        """As a request that is admitted: locks what is known."""
        space, tokens = self._prompt()
        found = self.cache.match(np.array(tokens), self.spaces[space])
        path = self.naive.known(space, tokens)
        assert found.length == len(path), "not the longest known prefix"
        node = self.cache.tree.lock(found)
        self._hold(node, self.naive.roots[space], path)

    def publish(self) -> None:
        """As a request that has computed: its run goes into the tree and its lock moves on."""
        if not self.held:
            return
        which = self.dice(len(self.held))
        node, root, path = self.held[which]
        tokens = self._tokens()
        pages = self._reserve(len(tokens))
        if pages is None:
            return
        end, added = self._insert(node, path[-1] if path else root, tokens, pages)
        self.cache.tree.move_lock(node, end)
        self.naive.lock(added, 1)
        self.naive.touch(path + added)
        self.held[which] = (end, root, path + added)

    def insert(self) -> None:
        """At the root, by someone who holds nothing."""
        space, tokens = self._prompt()
        pages = self._reserve(len(tokens))
        if pages is not None:
            root = self.cache.tree.root(self.spaces[space])
            _, added = self._insert(root, self.naive.roots[space], tokens, pages)
            self.naive.touch(added)

    def insert_again(self) -> None:
        """What is known already stays as it is, and the duplicates are free again."""
        space, tokens = self._prompt()
        known = self.naive.known(space, tokens)
        pages = self._reserve(len(known))
        if pages is None or self.naive.known(space, tokens) != known:
            self._release_all(pages)
            return
        root = self.cache.tree.root(self.spaces[space])
        n_free = self.naive.n_free
        tokens = tokens[: len(known)]
        _, added = self._insert(root, self.naive.roots[space], tokens, pages)
        assert added == known
        assert self.cache.pool.n_free == n_free + len(known)
        self.naive.touch(added)

    def insert_branches(self) -> None:
        """As a score's choices: below a locked node, one below the other."""
        if not self.held:
            return
        node, root, path = self.held[self.dice(len(self.held))]
        runs = [self._tokens(), self._tokens()]
        pages = self._reserve(sum(map(len, runs)))
        if pages is None:
            return
        path = list(path)
        for run, given in zip(runs, np.split(pages, [len(runs[0])]), strict=True):
            node, added = self._insert(node, path[-1] if path else root, run, given)
            path += added
            self.naive.touch(path)

    def unlock(self) -> None:
        if not self.held:
            return
        node, _, path = self.held.pop(self.dice(len(self.held)))
        self.cache.tree.unlock(node)
        self.naive.lock(path, -1)
        self.naive.touch(path)
        if self.kind == "radix" and self.dice(2):
            n_kept = self.dice(len(path) + 2)
            self.cache.demote(node, n_kept)
            self.naive.demote(path, n_kept)

    def evict(self) -> None:
        n, n_evictable = 1 + self.dice(6), self.naive.n_evictable
        pages = self.cache.tree.evict(n)
        assert len(pages) == min(n, n_evictable) or self.kind == "list"
        assert len(pages) >= min(n, n_evictable)
        self.cache.release(pages)
        self._follow_evictions()

    def reserve(self) -> None:
        pages = self._reserve(1 + self.dice(4))
        if pages is not None:
            self.apart += pages.tolist()

    def release(self) -> None:
        n = self.dice(len(self.apart) + 1)
        self.cache.release(np.array(self.apart[:n], np.int64))
        self.naive.release(self.apart[:n])
        del self.apart[:n]

    def flush(self) -> None:
        n_evictable = self.naive.n_evictable
        assert self.cache.flush() == n_evictable
        self._follow_evictions()
        assert self.cache.tree.n_evictable == 0

    # -- their parts --

    def _tokens(self) -> list[int]:
        return self.dice.some(1 + self.dice(self.longest), self.n_tokens)

    def _prompt(self) -> tuple[int, list[int]]:
        return self.dice(len(self.spaces)), self._tokens()

    def _reserve(self, n: int) -> Ints | None:
        can = n <= self.naive.n_evictable + self.naive.n_free
        n_before = self.cache.n_evicted
        pages = self.cache.reserve(n)
        assert (pages is not None) == can, "not what can be had"
        assert self.cache.n_evicted == n_before + sum(map(len, self.evicted))
        self._follow_evictions()
        if pages is not None:
            assert len(pages) == n
            self.naive.reserve(pages.tolist())
        return pages

    def _release_all(self, pages: Ints | None) -> None:
        if pages is not None:
            self.cache.release(pages)
            self.naive.release(pages.tolist())

    def _hold(self, node: Node, root: Place, path: list[Place]) -> None:
        pages = self.cache.tree.path_pages(node).tolist()
        assert pages == [place.page for place in path], "locked something else"
        self.naive.lock(path, 1)
        self.naive.touch(path)
        self.held.append((node, root, path))
        if len(self.held) > self.max_held:
            self.unlock()

    def _insert(
        self, under: Node, below: Place, tokens: list[int], pages: Ints
    ) -> tuple[Node, list[Place]]:
        given = pages.tolist()
        end, held = self.cache.insert(np.array(tokens, np.int64), pages, under)
        added = self.naive.insert(below, tokens, given)
        assert held.tolist() == [place.page for place in added], "other pages than were cached"
        return end, added

    def _follow_evictions(self) -> None:
        for pages in self.evicted:
            self.naive.evicted(pages.tolist())
        self.evicted.clear()

    def _compare(self) -> None:
        tree, naive = self.cache.tree, self.naive
        assert tree.n_tokens == len(naive.of_page)
        assert tree.n_evictable == naive.n_evictable
        assert self.cache.pool.n_free == naive.n_free


_WEIGHTS = {
    "match": 10,
    "begin": 24,
    "publish": 24,
    "insert": 10,
    "insert_again": 4,
    "insert_branches": 4,
    "unlock": 14,
    "evict": 4,
    "reserve": 6,
    "release": 6,
    "flush": 1,
}
OPERATIONS = [name for name, n in _WEIGHTS.items() for _ in range(n)]


def run(seed: int, n_operations: int, kind: str = "radix") -> None:
    dice = Dice(endless(seed))
    while n_operations > 0:
        n = min(EPISODES[dice(len(EPISODES))], n_operations)
        CacheFuzz(dice, kind).run(n)
        n_operations -= n
