"""The cache content that one engine is believed to hold: prefixes of the prompts sent to it."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from sgc.runtime.executor.routing.holders import Holders

LEAST = 64  # blocks that every engine is believed to have room for
GROWTH = 0.01  # the share of the room regained with each prompt that was cached as expected
MOST_RUNNING = 4  # rooms: with so many blocks under way, further prompts are not noted


@dataclass(frozen=True, slots=True)
class Use:
    """A prompt under way at an engine. n_made: blocks that its reply may take; epoch: how often the
    engine's content had been forgotten when the prompt began."""

    blocks: Sequence[int]
    n_made: int
    epoch: int


class Held:
    """Blocks of prompts as an engine's pool keeps them: blocks of requests under way, and room for
    their replies, stay; of the other blocks the least recently used are evicted first.

    room: the most blocks that the engine's pool can hold. If an expected block was missing, its age
    bounds the number of blocks that the engine really keeps: other clients use it too. holders: a
    table of several engines, in which this one is `bit`.
    """

    def __init__(self, room: int, holders: Holders | None = None, bit: int = 1) -> None:
        self.room = max(LEAST, room)
        self._kept = float(self.room)
        self._holders, self._bit = Holders() if holders is None else holders, bit
        self._running: dict[int, int] = {}  # a block's prompts under way
        # The number of new blocks when a block was last used. A prompt's last block is evicted
        # first, so that all blocks before a held block are held too.
        self._idle: OrderedDict[int, int] = OrderedDict()
        self._n_new = self._epoch = 0
        self._promised = 0  # blocks of replies under way

    def __len__(self) -> int:
        return len(self._running) + len(self._idle)

    def __contains__(self, block: int) -> bool:
        return block in self._running or block in self._idle

    @property
    def n_kept(self) -> int:
        """The number of blocks that the engine is believed to keep."""
        return int(self._kept)

    def n_held(self, blocks: Sequence[int]) -> int:
        """How many of a prompt's first blocks are held."""
        return bisect_left(blocks, True, key=lambda block: block not in self)

    def fit(self, room: int) -> None:
        """Records how many blocks the engine's pool can hold."""
        self.room = max(LEAST, room)
        self._kept = float(self.room)
        self._evict()

    def use(self, blocks: Sequence[int], n_made: int = 0) -> Use:
        """Notes that the engine computes a prompt, and so holds it."""
        if len(self._running) >= MOST_RUNNING * self.room:
            blocks = ()
        for block in reversed(blocks):
            n = self._running.get(block, 0)
            if not n and self._idle.pop(block, None) is None:
                self._n_new += 1
                self._holders.add(block, self._bit)
            self._running[block] = n + 1
        self._promised += n_made
        self._evict()
        return Use(blocks, n_made, self._epoch)

    def release(self, use: Use) -> None:
        """Notes that a prompt is not under way any more: its blocks may be evicted."""
        if use.epoch != self._epoch:
            return
        for block in reversed(use.blocks):
            left = self._running[block] - 1
            if left:
                self._running[block] = left
            else:
                del self._running[block]
                self._idle[block] = self._n_new
        self._promised -= use.n_made
        self._evict()

    def _evict(self) -> None:
        n_over = len(self) + self._promised - self._kept
        while n_over > 0 and self._idle:
            block, _ = self._idle.popitem(last=False)
            self._holders.drop(block, self._bit)
            n_over -= 1

    def age(self, block: int) -> int | None:
        """How many blocks the engine must have kept if it still holds this one: blocks under way,
        and blocks that came since it was last used; None if a prompt under way uses it."""
        at = self._idle.get(block)
        if at is None:
            return None
        return len(self._running) + self._promised + self._n_new - at

    def learn(self, expected: int, found: int, age: int | None) -> None:
        """Takes the engine's report of how many of a prompt's blocks were cached. age: that of the
        last expected block, before the prompt was sent. A missing block that was under way says
        nothing: it may not have been computed yet."""
        if found >= expected:
            self._kept = min(self.room, self._kept + GROWTH * self.room)
        elif age is not None:
            self._kept = max(LEAST, (self._kept + min(age, self._kept)) / 2)

    def clear(self) -> None:
        """Forgets everything: the engine was restarted, or its cache flushed."""
        for block in (*self._running, *self._idle):
            self._holders.drop(block, self._bit)
        self._running.clear()
        self._idle.clear()
        self._promised, self._epoch = 0, self._epoch + 1
