"""The prefix cache: the radix tree and the page pool, with eviction when pages run out.

It owns no tensors. The scheduler reserves and releases pages here. A request inserts what it has
computed, and other requests can then use it.
"""

from __future__ import annotations

from sgc.runtime.engine.cache.kept import Kept
from sgc.runtime.engine.cache.pool import PagePool
from sgc.runtime.engine.cache.radix import Match, Node, RadixTree
from sgc.runtime.engine.cache.states import StateSlots
from sgc.runtime.engine.ints import Ints


class PrefixCache:
    """states: the slots of recurrent layers, if the model has any."""

    def __init__(self, pool_tokens: int, tree: RadixTree | None = None) -> None:
        self.tree = RadixTree() if tree is None else tree
        self.pool = PagePool(pool_tokens)
        self.kept = Kept(self.tree, pool_tokens // 2 if tree is None else 0)
        self.states: StateSlots | None = None
        self.n_evicted = 0

    def keep_states(self, n_slots: int) -> None:
        """Makes a prefix count only up to a snapshot of the recurrent layers' states."""
        self.states = StateSlots(n_slots)
        self.tree.on_cut = self.states.drop

    def match(self, tokens: Ints, namespace: bytes) -> Match:
        """The longest cached prefix of `tokens` that a request can continue. Changes nothing."""
        match = self.tree.match(tokens, self.tree.root(namespace))
        return match if self.states is None else self.states.cut(match)

    @property
    def n_available(self) -> int:
        """How many pages `reserve` can return now."""
        return self.pool.n_free + self.tree.n_evictable

    def reserve(self, n: int) -> Ints | None:
        """`n` pages, evicting cached prefixes as needed; None if there are not enough."""
        if not self.make_available(n):
            return None
        if n > self.pool.n_free:
            self.n_evicted += self._evict(n - self.pool.n_free)
        return self.pool.reserve(n)

    def make_available(self, n: int) -> bool:
        """Drops kept prefixes as needed; returns whether `reserve` can return `n` pages."""
        while n > self.n_available and self.kept:
            self.kept.let_go_first()
        return n <= self.n_available

    def reserve_unused(self, n: int, since: int) -> Ints:
        """Up to `n` pages: free ones, or evicted ones not used after clock value `since`."""
        if n > self.pool.n_free:
            self.n_evicted += self._evict(n - self.pool.n_free, since)
        return self.pool.reserve(min(n, self.pool.n_free))

    def release(self, pages: Ints) -> None:
        self.pool.release(pages)

    def insert(self, tokens: Ints, pages: Ints, under: Node) -> tuple[Node, Ints]:
        """Gives the pages to the tree, and frees those whose tokens it already had.

        Returns the node where the run ends, and the pages that now hold it.
        """
        done = self.tree.insert(tokens, pages, under)
        if done.pages is not pages:
            self.pool.release(pages[done.pages != pages])
        return done.node, done.pages

    def demote(self, node: Node, n_kept: int) -> None:
        """Marks the path to the node, after its first `n_kept` tokens, to be evicted first."""
        self.tree.demote(node, n_kept)

    def flush(self) -> int:
        """Drops every cached prefix that is not locked, without writing it to disk; returns the
        number of tokens."""
        self.kept.clear()
        return self._release(self.tree.evict(self.tree.n_evictable, tells=False))

    def check(self, *held: Ints) -> None:
        """`held`: the pages of running requests that are not in the tree."""
        self.tree.check()
        self.pool.check(self.tree.all_pages(), *held)

    def check_locks(self, n_holders: int) -> None:
        """Asserts that each running or pinned request, and each kept prefix, holds one lock on its
        path from the root."""
        n_holders += len(self.kept)
        n_locks = sum(node.locks for node in self.tree.nodes() if node.parent is None)
        assert n_locks == n_holders, f"{n_locks} locks of {n_holders} holders"

    def _evict(self, n: int, until: int | None = None) -> int:
        return self._release(self.tree.evict(n, until))

    def _release(self, pages: Ints) -> int:
        self.pool.release(pages)
        return len(pages)
