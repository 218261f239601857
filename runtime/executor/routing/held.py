"""What one engine is believed to hold: the beginnings of the prompts that it was sent."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence

from sgc.runtime.executor.routing.holders import Holders

LEAST = 64  # blocks that every engine is believed to have room for
GROWTH = 0.01  # of the room, regained with each prompt that was found as expected


class Held:
    """Blocks of prompts, the least recently used of which an engine evicts first.

    room: the most blocks that the engine's pool can hold. If a block that should be there was not,
    its age says that the engine keeps fewer: other clients use it too. holders: a table of several
    engines, in which this one is `bit`.
    """

    def __init__(self, room: int, holders: Holders | None = None, bit: int = 1) -> None:
        self.room = max(LEAST, room)
        self._kept = float(self.room)
        self._holders, self._bit = Holders() if holders is None else holders, bit
        # The number of blocks that were new when a block was last used. A prompt's last block is
        # the first to go, so that whatever is held, all that comes before it is held too.
        self._used: OrderedDict[int, int] = OrderedDict()
        self._n_new = 0

    def __len__(self) -> int:
        return len(self._used)

    @property
    def n_kept(self) -> int:
        """The number of blocks that the engine is believed to keep."""
        return int(self._kept)

    def n_held(self, blocks: Sequence[int]) -> int:
        """How many of a prompt's first blocks are held."""
        return bisect_left(blocks, True, key=lambda block: block not in self._used)

    def hold(self, blocks: Sequence[int]) -> None:
        """Notes that the engine computes a prompt, and so holds it."""
        for block in reversed(blocks):
            if block not in self._used:
                self._n_new += 1
                self._holders.add(block, self._bit)
            self._used[block] = self._n_new
            self._used.move_to_end(block)
        while len(self._used) > self._kept:
            block, _ = self._used.popitem(last=False)
            self._holders.drop(block, self._bit)

    def age(self, block: int) -> int:
        """How many new blocks have come since a block was last used."""
        return self._n_new - self._used.get(block, self._n_new)

    def learn(self, expected: int, found: int, age: int) -> None:
        """Takes the engine's report: how many of a prompt's blocks were cached. age: that of the
        last of those expected, before the prompt was sent."""
        if found < expected:
            self._kept = max(LEAST, (self._kept + min(age, self._kept)) / 2)
        else:
            self._kept = min(self.room, self._kept + GROWTH * self.room)

    def clear(self) -> None:
        """Forgets everything: the engine was restarted, or its cache flushed."""
        for block in self._used:
            self._holders.drop(block, self._bit)
        self._used.clear()
