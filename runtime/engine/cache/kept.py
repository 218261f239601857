"""Prefixes that a program's run will use again, locked for a while after a request has ended.

They are evicted last: when nothing else can make room, the prefix that was kept longest ago goes
first. Together they take at most half of the pool.
"""

from __future__ import annotations

from collections import OrderedDict

from sgc.runtime.engine.cache.radix import Match, Node, RadixTree

KEPT_S = 30.0


class Kept:
    """most_tokens: of all kept prefixes; shared tokens count for each. 0: nothing is kept."""

    def __init__(self, tree: RadixTree, most_tokens: int) -> None:
        self._tree, self._most = tree, most_tokens
        self._until: OrderedDict[Node, tuple[float, int]] = OrderedDict()  # expiry, and length
        self._n_tokens = 0

    def __len__(self) -> int:
        return len(self._until)

    def keep(self, node: Node, now: float) -> None:
        """Keeps the path to a node's end; nodes on that path need not be kept separately."""
        if self._most == 0:
            return
        step: Node | None = node
        while step is not None:
            if step in self._until:
                self._let_go(step)
            step = step.parent
        length = self._tree.length(node)
        if not 0 < length <= self._most:
            return
        self._until[node] = now + KEPT_S, length
        self._n_tokens += length
        self._tree.lock(Match(node, len(node), length))
        while self._n_tokens > self._most:
            self.let_go_first()

    def let_go(self, node: Node, n_reusable: int) -> None:
        """Stops keeping nodes on the path to `node` that end after `n_reusable` tokens."""
        if not self._until:
            return
        end, step = self._tree.length(node), node
        while step.parent is not None and end > n_reusable:
            self._let_go(step)
            step, end = step.parent, end - len(step)

    def expire(self, now: float) -> None:
        while self._until and next(iter(self._until.values()))[0] <= now:
            self.let_go_first()

    def let_go_first(self) -> None:
        self._let_go(next(iter(self._until)))

    def clear(self) -> None:
        while self._until:
            self.let_go_first()

    def _let_go(self, node: Node) -> None:
        found = self._until.pop(node, None)
        if found is not None:
            self._n_tokens -= found[1]
            self._tree.unlock(node)
