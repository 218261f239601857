"""Which engines hold which blocks: one table for all of them, asked by a prompt."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Holders:
    """For each block the engines that hold it, as a mask with a bit for each.

    An engine holds a prefix of a prompt. So every holder of a later block holds the earlier blocks
    too, and the places where holders change are found by bisection.
    """

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def __len__(self) -> int:
        """The number of blocks that any engine holds."""
        return len(self._masks)

    def add(self, block: int, bit: int) -> None:
        self._masks[block] = self._masks.get(block, 0) | bit

    def drop(self, block: int, bit: int) -> None:
        left = self._masks[block] & ~bit
        if left:
            self._masks[block] = left
        else:
            del self._masks[block]

    def levels(self, blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Numbers of first blocks, most first, each with the mask of the engines that hold exactly
        that many. Engines that hold none are left out."""
        get = self._masks.get
        n = bisect_left(blocks, True, key=lambda block: block not in self._masks)
        above = 0
        while n:
            mask = get(blocks[n - 1], 0)
            yield n, mask & ~above
            above = mask
            n = bisect_left(blocks, True, hi=n, key=lambda block: get(block, 0) == above)


class Unseen:
    """Engines that were not considered yet, those that hold most of a prompt first.

    usable: the mask of engines that may be chosen. depth: the most blocks that an unseen engine
    holds.
    """

    def __init__(self, levels: Iterator[tuple[int, int]], usable: int) -> None:
        self._levels, self._left = levels, usable
        self.depth, self._holding = next(levels, (0, 0))
        self._go_down()

    def deepest(self) -> int:
        """The number of an unseen engine that holds most; -1 if none holds anything."""
        found = self._holding & self._left
        return (found & -found).bit_length() - 1

    def see(self, number: int) -> bool:
        """Notes that an engine is considered; returns whether it is new and may be chosen."""
        if number < 0 or not self._left >> number & 1:
            return False
        self._left &= ~(1 << number)
        self._go_down()
        return True

    def _go_down(self) -> None:
        while self.depth and not self._holding & self._left:
            self.depth, self._holding = next(self._levels, (0, 0))
