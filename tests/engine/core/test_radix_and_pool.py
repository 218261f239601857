"""The radix tree and the pool against a naive cache: a dictionary from prefixes to pages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sgc.runtime.engine.cache import PrefixCache
from sgc.runtime.engine.pool import PagePool
from sgc.runtime.engine.radix import Match, RadixTree

POOL = 40
runs = st.lists(st.integers(0, 2), min_size=1, max_size=12)
spaces = st.sampled_from([b"", b"other"])


class AgainstNaive(RuleBasedStateMachine):
    """prefixes: (namespace, tokens…) -> page; a stamp and a number of locks for each."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = PrefixCache(POOL)
        self.pages: dict[tuple, int] = {}
        self.stamps: dict[tuple, int] = {}
        self.locks: list[tuple] = []  # (node, key)
        self.clock = 0

    def _touch(self, key: tuple) -> None:
        self.clock += 1
        for end in range(2, len(key) + 1):
            self.stamps[key[:end]] = self.clock

    def _known(self, key: tuple) -> int:
        n = 0
        while n + 2 <= len(key) and key[: n + 2] in self.pages:
            n += 1
        return n

    def _evict_naively(self, n: int) -> None:
        for _ in range(n):
            locked = {key[:end] for _, key in self.locks for end in range(2, len(key) + 1)}
            inner = {key[:-1] for key in self.pages}
            leaves = [key for key in self.pages if key not in inner and key not in locked]
            oldest = min(leaves, key=lambda key: self.stamps[key])
            del self.pages[oldest], self.stamps[oldest]

    @rule(tokens=runs, space=spaces)
    def match(self, tokens: list[int], space: bytes) -> None:
        tree = self.cache.tree
        found = tree.match(np.array(tokens), tree.root(space))
        assert found.length == self._known((space, *tokens))

    @rule(tokens=runs, space=spaces)
    def lock_and_insert(self, tokens: list[int], space: bytes) -> None:
        """As a request does: lock what is known, reserve, insert the rest, keep the lock."""
        tree, key = self.cache.tree, (space, *tokens)
        found = tree.match(np.array(tokens), tree.root(space))
        node = tree.lock(found)
        held = key[: 1 + found.length]
        self.locks.append((node, held))
        self._touch(held)
        n_new = len(tokens) - found.length
        n_evictable, n_free = tree.n_evictable, self.cache.pool.n_free
        new = self.cache.reserve(n_new)
        if new is None:
            assert n_new > n_evictable + n_free
            return
        self._evict_naively(max(0, n_new - n_free))
        end, pages = self.cache.insert(np.array(tokens[found.length :], np.int64), new, node)
        tree.move_lock(node, end)
        self.locks[-1] = (end, key)
        for i, page in enumerate(pages):
            self.pages[key[: 2 + found.length + i]] = int(page)
        self._touch(key)
        assert tree.path_pages(end).tolist() == [
            self.pages[key[:n]] for n in range(2, len(key) + 1)
        ]

    @rule(tokens=runs, space=spaces)
    def insert_twice(self, tokens: list[int], space: bytes) -> None:
        """What is known already keeps its pages, and the duplicates are freed."""
        tree, key = self.cache.tree, (space, *tokens)
        n_free = self.cache.pool.n_free
        if n_free < len(tokens):
            return
        known = self._known(key)
        new = self.cache.reserve(len(tokens))
        _, pages = self.cache.insert(np.array(tokens), new, tree.root(space))
        assert self.cache.pool.n_free == n_free - (len(tokens) - known)
        for i, page in enumerate(pages.tolist()):
            assert self.pages.setdefault(key[: 2 + i], page) == page
        self._touch(key)

    @rule(which=st.integers(0, 100))
    def unlock(self, which: int) -> None:
        if self.locks:
            node, key = self.locks.pop(which % len(self.locks))
            self.cache.tree.unlock(node)
            self._touch(key)

    @rule(n=st.integers(1, 10))
    def evict(self, n: int) -> None:
        n = min(n, self.cache.tree.n_evictable)
        freed = self.cache.tree.evict(n)
        assert len(freed) == n
        self.cache.release(freed)
        self._evict_naively(n)

    @invariant()
    def agrees(self) -> None:
        self.cache.check()
        assert self.cache.tree.n_tokens == len(self.pages)
        assert sorted(self.cache.tree.all_pages()) == sorted(self.pages.values())


AgainstNaive.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, database=None
)
TestAgainstNaive = AgainstNaive.TestCase


def test_a_match_changes_nothing_and_a_lock_splits() -> None:
    tree = RadixTree()
    tree.insert(np.arange(10), np.arange(10), tree.root())
    found = tree.match(np.array([0, 1, 2, 9]), tree.root())
    assert (found.length, found.used, found.at_end) == (3, 3, False)
    assert len(list(tree.nodes())) == 2
    node = tree.lock(found)
    assert len(list(tree.nodes())) == 3
    assert tree.path_pages(node).tolist() == [0, 1, 2]
    assert tree.n_evictable == 7
    tree.check()


def test_check_sees_a_broken_tree() -> None:
    tree = RadixTree()
    tree.insert(np.arange(4), np.arange(4), tree.root())
    leaf = tree.match(np.arange(4), tree.root()).node
    leaf.locks = 1
    with pytest.raises(AssertionError):
        tree.check()


def test_unlocking_too_often_is_our_bug() -> None:
    tree = RadixTree()
    node = tree.lock(Match(tree.root(), 0, 0))
    tree.unlock(node)
    with pytest.raises(AssertionError, match="more often"):
        tree.unlock(node)


def test_eviction_does_not_scan_the_tree() -> None:
    """Evicting n leaves one at a time looks at each a bounded number of times."""
    tree = RadixTree()
    n = 2000
    for i in range(n):
        tree.insert(np.array([i, 7]), np.array([2 * i, 2 * i + 1]), tree.root())
    looked = 0
    original = tree._is_evictable

    def counting(node):  # type: ignore[no-untyped-def]
        nonlocal looked
        looked += 1
        return original(node)

    tree._is_evictable = counting  # type: ignore[method-assign]
    for _ in range(2 * n):
        assert len(tree.evict(1)) == 1
    assert looked <= 8 * n


def test_pool_gives_each_page_once_and_notices_leaks() -> None:
    pool = PagePool(8)
    taken = pool.reserve(5)
    assert len(set(taken.tolist())) == 5
    pool.check(taken)
    with pytest.raises(AssertionError, match="accounted"):
        pool.check()
    with pytest.raises(AssertionError, match="two holders"):
        pool.check(np.array([taken[0]] * 5))
    with pytest.raises(AssertionError, match="asked"):
        pool.reserve(4)
    pool.release(taken)
    assert pool.n_free == 8
    with pytest.raises(AssertionError, match="released"):
        pool.release(taken)
