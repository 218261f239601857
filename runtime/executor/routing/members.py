"""Engines as a router knows them, and the order of those that may answer."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from sgc.runtime.executor.routing.held import Held

# An engine's waiting work, its running requests, its held blocks, when it was last chosen, its
# number.
Rank = tuple[int, int, int, int, int]


@dataclass(slots=True, eq=False)
class Member:
    """An engine: its held blocks, and its waiting work in positions. number: its bit in
    masks; turn: when it was last chosen. n_failed: how often in a row it did not answer; tried_at:
    when it is tried again."""

    name: str
    number: int
    held: Held
    work: int = 0
    n_running: int = 0
    turn: int = 0
    n_failed: int = 0
    tried_at: float = 0.0

    @property
    def bit(self) -> int:
        return 1 << self.number

    @property
    def rank(self) -> Rank:
        return self.work, self.n_running, len(self.held), self.turn, self.number


class Ready:
    """The engines that may answer, those with the least work first.

    mask: their bits; work: of all of them. An engine that is to change is taken out first.
    """

    def __init__(self) -> None:
        self.mask = self.work = 0
        self._ranks: list[Rank] = []
        self._members: dict[int, Member] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._ranks)

    def __contains__(self, member: Member) -> bool:
        return self._members.get(member.number) is member

    def __getitem__(self, number: int) -> Member:
        return self._members[number]

    def put(self, member: Member) -> None:
        insort(self._ranks, member.rank)
        self._members[member.number] = member
        self.mask |= member.bit
        self.work += member.work

    def take(self, member: Member) -> None:
        del self._ranks[bisect_left(self._ranks, member.rank)]
        del self._members[member.number]
        self.mask &= ~member.bit
        self.work -= member.work
