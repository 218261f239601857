"""Which slots hold the states of recurrent layers: those of running requests, and snapshots that
nodes of the radix tree carry. It owns slot numbers, not tensors (`model/recurrent/states.py`).

A recurrent layer keeps a state of fixed size in place of K and V, and can go on from it only after
exactly the tokens that made it. So a node may carry a snapshot of the states after its last token,
and a cached prefix is usable up to the deepest node with a snapshot. Snapshots are evicted
separately, the least recently used first; before all others, those at the ends of chunks, which may
never be needed.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from sgc.runtime.engine.cache.radix import NO_STATE, Match, Node

EMPTY = 0  # the states of a sequence without tokens; never written
SCRAP = 1  # what is written there is never read
FIRST = 2
LEAST_SLOTS = 2  # one that a request writes, and one that it may continue from


class StateSlots:
    """n_slots: without `EMPTY` and `SCRAP`. n_evicted: snapshots that made room for others."""

    def __init__(self, n_slots: int) -> None:
        assert n_slots >= LEAST_SLOTS
        self.n_slots = n_slots
        self.n_evicted = 0
        self._free = list(range(FIRST + n_slots - 1, FIRST - 1, -1))
        self._weak: OrderedDict[int, Node] = OrderedDict()  # the first is evicted first
        self._kept: OrderedDict[int, Node] = OrderedDict()
        self._held: Counter[int] = Counter()

    @property
    def n_snapshots(self) -> int:
        return len(self._weak) + len(self._kept)

    def cut(self, match: Match) -> Match:
        """The part of a match that a request can continue from."""
        node, length = match.node, match.length
        if not match.at_end and node.parent is not None:
            node, length = node.parent, length - match.used
        while node.parent is not None and node.state == NO_STATE:
            node, length = node.parent, length - len(node)
        return Match(node, len(node), length, match.length)

    def reserve(self) -> int | None:
        """A slot to write, evicting a snapshot as needed; None if all are in use."""
        if not self._free:
            self._evict()
        return self._free.pop() if self._free else None

    def release(self, slot: int) -> None:
        self._free.append(slot)

    def give(self, node: Node, slot: int, is_weak: bool = False) -> None:
        """Makes the slot the snapshot of a node that is in the tree."""
        if node.state != NO_STATE:
            self.release(slot)
            self.touch(node)
            return
        node.state = slot
        (self._weak if is_weak else self._kept)[slot] = node

    def touch(self, node: Node) -> None:
        """Records that a request continues from the node's snapshot."""
        if node.state == NO_STATE:
            return
        self._weak.pop(node.state, None)
        self._kept[node.state] = node
        self._kept.move_to_end(node.state)

    def hold(self, slot: int) -> None:
        """Keeps a snapshot from being evicted."""
        if slot != EMPTY:
            self._held[slot] += 1

    def unhold(self, slot: int) -> None:
        if slot != EMPTY:
            assert self._held[slot] > 0, "a state was let go more often than held"
            self._held[slot] -= 1

    def drop(self, node: Node) -> None:
        """Drops the snapshot of a node that loses its last tokens."""
        if node.state != NO_STATE:
            assert not self._held[node.state], "a state that is read was dropped"
            self._take_from(node)

    def check(self, nodes: Iterable[Node], own: Iterable[int]) -> None:
        """Asserts that each slot has one holder. own: slots of running requests."""
        carried = {node.state: node for node in nodes if node.state != NO_STATE}
        assert carried == {**self._weak, **self._kept}, "a snapshot is not its node's"
        used = sorted([*self._free, *carried, *own])
        assert used == list(range(FIRST, FIRST + self.n_slots)), f"not each slot once: {used}"

    def check_held(self, read: Iterable[int]) -> None:
        """read: the snapshots that running requests are about to read."""
        assert +self._held == Counter(slot for slot in read if slot != EMPTY)

    def _evict(self) -> None:
        for kept in (self._weak, self._kept):
            node = next((node for slot, node in kept.items() if not self._held[slot]), None)
            if node is not None:
                self._take_from(node)
                self.n_evicted += 1
                return

    def _take_from(self, node: Node) -> None:
        self._weak.pop(node.state, None)
        self._kept.pop(node.state, None)
        self._free.append(node.state)
        node.state = NO_STATE
