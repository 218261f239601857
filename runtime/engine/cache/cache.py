"""The radix tree and the page pool as one memory: cached prefixes make room for new pages.

A table of sequences can stand in for the tree, and nothing at all can be kept: the ablations
of the paper.

Owns no tensors. The scheduler reserves and releases here; a request publishes what it has
computed, which shares it with everyone.
"""

from __future__ import annotations

import numpy as np

from sgc.runtime.engine.cache.list_cache import ListCache
from sgc.runtime.engine.cache.pool import PagePool
from sgc.runtime.engine.cache.radix import NO_INTS, Ints, Match, Node, RadixTree
from sgc.runtime.engine.names import CACHES, DEFAULT_CACHE


class PrefixCache:
    """kind: "radix", "list" (`list_cache.py`) or "none". Raises ValueError for any other."""

    def __init__(self, pool_tokens: int, kind: str = DEFAULT_CACHE) -> None:
        if kind not in CACHES:
            raise ValueError(f"cache must be one of {', '.join(CACHES)}, not {kind!r}")
        self.keeps = kind != "none"
        self.tree = ListCache(pool_tokens) if kind == "list" else RadixTree()
        self.pool = PagePool(pool_tokens)
        self.n_evicted = 0

    def match(self, tokens: Ints, namespace: bytes) -> Match:
        """The longest prefix that is held. Changes nothing."""
        root = self.tree.root(namespace)
        return self.tree.match(tokens, root) if self.keeps else Match(root, 0, 0)

    @property
    def n_available(self) -> int:
        """Pages that `reserve` could give now."""
        return self.pool.n_free + self.tree.n_evictable

    def reserve(self, n: int) -> Ints | None:
        """`n` pages, evicting cached prefixes as needed; None if they cannot be had."""
        if n > self.n_available:
            return None
        if n > self.pool.n_free:
            self.n_evicted += self._evict(n - self.pool.n_free)
        return self.pool.reserve(n)

    def reserve_unused(self, n: int, since: int) -> Ints:
        """Up to `n` pages that are free, or of what has not been used since the tree's clock."""
        if n > self.pool.n_free:
            self.n_evicted += self._evict(n - self.pool.n_free, since)
        return self.pool.reserve(min(n, self.pool.n_free))

    def release(self, pages: Ints) -> None:
        self.pool.release(pages)

    def insert(self, tokens: Ints, pages: Ints, under: Node) -> tuple[Node, Ints]:
        """Gives pages to the tree; frees those whose tokens it already had.

        Returns where the run ends, and the pages that now stand for it.
        """
        done = self.tree.insert(tokens, pages, under)
        if done.pages is not pages:
            self.pool.release(pages[done.pages != pages])
        return done.node, done.pages

    def demote(self, node: Node, n_kept: int) -> None:
        """What leads to the node after `n_kept` tokens is not used again, as far as we know."""
        if isinstance(self.tree, RadixTree):
            self.tree.demote(node, n_kept)

    def flush(self) -> int:
        """Drops every cached prefix that is not locked; gives the number of tokens."""
        return self._evict(self.tree.n_evictable)

    def check(self, *held: Ints) -> None:
        """`held`: the pages of running requests that are not in the tree."""
        self.tree.check()
        self.pool.check(self.tree.all_pages(), *held)

    def check_locks(self, n_holders: int) -> None:
        """Each running or pinned request holds one lock, down from its root."""
        n_locks = sum(node.locks for node in self.tree.nodes() if node.parent is None)
        assert n_locks == n_holders, f"{n_locks} locks of {n_holders} holders"

    def _evict(self, n: int, until: int | None = None) -> int:
        pages = self.tree.evict(n, until)
        self.pool.release(pages)
        return len(pages)


class IntBuffer:
    """A growing run of integers that gives views; appending costs amortised O(1)."""

    __slots__ = ("_data", "_n")

    def __init__(self, start: Ints = NO_INTS) -> None:
        self._n = len(start)
        self._data: Ints = NO_INTS
        if self._n:
            self._data = np.empty(self._n + 16, np.int64)
            self._data[: self._n] = start

    def __len__(self) -> int:
        return self._n

    @property
    def view(self) -> Ints:
        """Valid until the next change."""
        return self._data[: self._n]

    @property
    def last(self) -> Ints:
        """The last one, as a view."""
        return self._data[self._n - 1 : self._n]

    def at(self, index: int) -> int:
        return self._data.item(index)

    def extend(self, more: Ints) -> None:
        self._grow(len(more))
        self._data[self._n : self._n + len(more)] = more
        self._n += len(more)

    def append(self, value: int) -> None:
        if self._n == len(self._data):
            self._grow(1)
        self._data[self._n] = value
        self._n += 1

    def clear(self) -> None:
        self._n = 0

    def cut(self, n: int) -> Ints:
        """Keeps the first `n`; gives the rest."""
        rest = self._data[n : self._n].copy()
        self._n = n
        return rest

    def _grow(self, n: int) -> None:
        if self._n + n > len(self._data):
            bigger = np.empty(2 * (self._n + n) + 8, np.int64)
            bigger[: self._n] = self._data[: self._n]
            self._data = bigger
