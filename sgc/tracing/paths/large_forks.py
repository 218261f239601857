"""Forks into many streams, whose children cost too much to explore one by one."""

from __future__ import annotations

from enum import Enum

LARGE = 8  # streams


class _Are(Enum):
    NONE = "none"  # none was met
    EXPLORED = "explored"  # each child is explored
    OPEN = "open"  # a loop begins the children, as if their number were not known
    KEPT = "kept"  # each child is explored, since the program cannot be traced with OPEN


class LargeForks:
    """How the large forks of a program are traced."""

    def __init__(self) -> None:
        self._are = _Are.NONE

    def is_open(self, size: int) -> bool:
        """Whether a fork into so many streams is traced as if the number were not known."""
        if size >= LARGE and self._are is _Are.NONE:
            self._are = _Are.EXPLORED
        return size >= LARGE and self._are is _Are.OPEN

    @property
    def may_open(self) -> bool:
        """Whether there are large forks whose children are explored one by one."""
        return self._are is _Are.EXPLORED

    def open(self) -> bool:
        """Opens large forks from now on; returns whether this changes anything."""
        return self._turn(_Are.EXPLORED, _Are.OPEN)

    def keep(self) -> bool:
        """Explores each child from now on, for good; returns whether the forks were open."""
        return self._turn(_Are.OPEN, _Are.KEPT)

    def _turn(self, before: _Are, after: _Are) -> bool:
        is_so = self._are is before
        self._are = after if is_so else self._are
        return is_so
