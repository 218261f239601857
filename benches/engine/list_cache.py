"""A list of whole sequences in place of the radix tree, as its baseline.

It has `RadixTree`'s interface but no tree: every node is a whole sequence just below its
namespace's root, and a linear search finds the longest common prefix with a prompt. Sequences with
a common prefix share its pages, which have reference counts; whole sequences are evicted, the least
recently used first. It is the paper's ablation "no tree structure", and an oracle for tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sgc.runtime.engine.cache.radix import Inserted, Match, Node
from sgc.runtime.engine.ints import NO_INTS, Ints, common_prefix


class _Holders:
    """The number of sequences that hold each page, and the number of pages that are held."""

    def __init__(self, n_pages: int) -> None:
        self.counts: Ints = np.zeros(n_pages, np.int64)
        self.n_held = 0

    def add(self, pages: Ints) -> None:
        self.counts[pages] += 1
        self.n_held += int(np.count_nonzero(self.counts[pages] == 1))

    def remove(self, pages: Ints) -> Ints:
        """Removes a holder of pages; returns the pages that no sequence holds any more."""
        self.counts[pages] -= 1
        free: Ints = pages[self.counts[pages] == 0]
        self.n_held -= len(free)
        return free


class ListCache:
    """The cache. n_pages: page ids are below it. A node has the tokens and pages of its whole path.

    A lock counts at the sequence and at its root.
    """

    def __init__(self, n_pages: int) -> None:
        self._roots: dict[bytes, Node] = {}
        self._table: list[Node] = []
        self._holders = _Holders(n_pages)
        self._lockers = _Holders(n_pages)
        self._clock = 0

    @property
    def n_tokens(self) -> int:
        return self._holders.n_held

    @property
    def n_evictable(self) -> int:
        return self._holders.n_held - self._lockers.n_held

    def following(self, tokens: Ints, under: Node, n: int) -> Ints:
        return NO_INTS

    def root(self, namespace: bytes = b"") -> Node:
        root = self._roots.get(namespace)
        if root is None:
            root = self._roots[namespace] = Node(NO_INTS, NO_INTS, None)
        return root

    def match(self, tokens: Ints, under: Node) -> Match:
        """The longest prefix of `tokens` below `under`; prefers a sequence that ends there."""
        root, whole = _root_of(under), np.concatenate([under.tokens, tokens])
        best, used = root, 0
        for node in self._table:
            if node.parent is root:
                n = common_prefix(node.tokens, whole)
                if n > used or (n == used and n == len(node)):
                    best, used = node, n
        return Match(best, used, used - len(under))

    def lock(self, match: Match) -> Node:
        """Protects a match from eviction; it becomes a sequence of its own if it is not one."""
        node = match.node
        if not match.at_end:
            node = self._add(_root_of(node), node.tokens[: match.used], node.pages[: match.used])
        self._lock(node)
        return node

    def move_lock(self, node: Node, below: Node) -> None:
        """Moves a lock to a longer sequence; drops the shorter one if it has no other lock."""
        self._lock(below)
        self.unlock(node)
        if node.locks == 0 and node.parent is not None:
            self._drop(node)

    def unlock(self, node: Node) -> None:
        assert node.locks > 0, "unlocked more often than locked"
        node.locks -= 1
        if node.parent is not None:
            node.parent.locks -= 1
        if node.locks == 0:
            self._lockers.remove(node.pages)
        self._touch(node)

    def insert(self, tokens: Ints, pages: Ints, under: Node) -> Inserted:
        """Adds `under` and the tokens after it as one sequence, in place of those it continues.

        Pages of tokens that were cached already stay the caller's: `Inserted.pages` differs there.
        """
        assert len(tokens) == len(pages)
        known = self.match(tokens, under)
        if known.at_end and known.length == len(tokens):
            self._touch(known.node)
            return Inserted(known.node, known.node.pages[len(under) :])
        whole = np.concatenate([under.tokens, tokens])
        held = np.concatenate([known.node.pages[: known.used], pages[known.length :]])
        node = self._add(_root_of(under), whole, held)
        for shorter in [other for other in self._table if _continues(node, other)]:
            self._drop(shorter)
        return Inserted(node, held[len(under) :])

    def demote(self, node: Node, n_kept: int) -> None:
        """Does nothing: this cache ignores last uses."""

    def path_pages(self, node: Node) -> Ints:
        return node.pages

    @property
    def clock(self) -> int:
        """A counter that grows with every use."""
        return self._clock

    def evict(self, n: int, until: int | None = None, tells: bool = True) -> Ints:
        """Removes whole unlocked sequences until `n` or more pages are free; returns those pages.
        until, tells: as in `RadixTree.evict`; there is nobody to tell."""
        taken = [NO_INTS]
        unlocked = (node for node in self._table if node.locks == 0)
        for node in sorted(unlocked, key=lambda node: node.stamp):
            if n <= 0 or (until is not None and node.stamp > until):
                break
            taken.append(self._drop(node))
            n -= len(taken[-1])
        return np.concatenate(taken)

    def nodes(self) -> Iterator[Node]:
        yield from self._roots.values()
        yield from self._table

    def all_pages(self) -> Ints:
        pages: Ints = np.flatnonzero(self._holders.counts)
        return pages

    def check(self) -> None:
        """Checks that only common prefixes share pages, and that all counts are right."""
        ordered = sorted(self._table, key=lambda node: (id(node.parent), node.data))
        n_distinct = len(ordered[0]) if ordered else 0
        for a, b in pairwise(ordered):
            n = common_prefix(a.tokens, b.tokens) if a.parent is b.parent else 0
            assert len(b) > n, "a sequence is in the table twice"
            assert np.array_equal(a.pages[:n], b.pages[:n])
            n_distinct += len(b) - n
        assert n_distinct == self.n_tokens == len(self.all_pages())
        assert all(len(node) == len(node.pages) > 0 <= node.locks for node in self._table)
        for root in self._roots.values():
            assert root.locks >= sum(n.locks for n in self._table if n.parent is root)
        _check_counts(self._holders, self._table)
        _check_counts(self._lockers, [node for node in self._table if node.locks])

    def _add(self, root: Node, tokens: Ints, pages: Ints) -> Node:
        node = Node(tokens, pages.copy(), root)
        self._table.append(node)
        self._holders.add(node.pages)
        self._touch(node)
        return node

    def _drop(self, node: Node) -> Ints:
        self._table.remove(node)
        return self._holders.remove(node.pages)

    def _lock(self, node: Node) -> None:
        if node.locks == 0:
            self._lockers.add(node.pages)
        node.locks += 1
        if node.parent is not None:
            node.parent.locks += 1

    def _touch(self, node: Node) -> None:
        self._clock += 1
        node.stamp = self._clock


def _root_of(node: Node) -> Node:
    return node if node.parent is None else node.parent


def _continues(node: Node, other: Node) -> bool:
    """Whether `node` begins with all of `other`, which has no lock."""
    return (
        other is not node
        and other.locks == 0
        and other.parent is node.parent
        and node.data.startswith(other.data)
    )


def _check_counts(holders: _Holders, nodes: list[Node]) -> None:
    pages = np.concatenate([NO_INTS, *(node.pages for node in nodes)])
    assert np.array_equal(holders.counts, np.bincount(pages, minlength=len(holders.counts)))
    assert holders.n_held == np.count_nonzero(holders.counts)
