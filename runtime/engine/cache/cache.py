"""The radix tree and the page pool as one memory: cached prefixes make room for new pages.

Owns no tensors. The scheduler reserves and releases here; a request publishes what it has
computed, which shares it with everyone.
"""

from __future__ import annotations

from sgc.runtime.engine.cache.pool import PagePool
from sgc.runtime.engine.cache.radix import Match, Node, RadixTree
from sgc.runtime.engine.ints import Ints


class PrefixCache:
    def __init__(self, pool_tokens: int, tree: RadixTree | None = None) -> None:
        self.tree = RadixTree() if tree is None else tree
        self.pool = PagePool(pool_tokens)
        self.n_evicted = 0

    def match(self, tokens: Ints, namespace: bytes) -> Match:
        """The longest prefix that is held. Changes nothing."""
        return self.tree.match(tokens, self.tree.root(namespace))

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
        """Returns pages to the tree; frees those whose tokens it already had.

        Returns where the run ends, and the pages that now stand for it.
        """
        done = self.tree.insert(tokens, pages, under)
        if done.pages is not pages:
            self.pool.release(pages[done.pages != pages])
        return done.node, done.pages

    def demote(self, node: Node, n_kept: int) -> None:
        """What leads to the node after `n_kept` tokens is not used again, as far as we know."""
        self.tree.demote(node, n_kept)

    def flush(self) -> int:
        """Drops every cached prefix that is not locked; returns the number of tokens."""
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
