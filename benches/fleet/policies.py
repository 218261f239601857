"""Ways to choose an engine: ours, and those it is compared with."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, Protocol

from fleet.simulated import BLOCK
from sgc.runtime.executor.routing.held import Held
from sgc.runtime.executor.routing.holders import Holders
from sgc.runtime.executor.routing.router import Router


class Policy(Protocol):
    """`send` gives the number of an engine and a note, which `done` gets back with the blocks that
    were found there."""

    def send(self, blocks: Sequence[int], n_out: float) -> tuple[int, Any]: ...

    def done(self, note: Any, found: int) -> None: ...


class _Counting:
    """Counts the requests that run on each engine."""

    def __init__(self, n: int, room: int) -> None:
        self.n_running = [0] * n

    def done(self, note: Any, found: int) -> None:
        self.n_running[note] -= 1

    def took(self, number: int) -> tuple[int, Any]:
        self.n_running[number] += 1
        return number, number


class RoundRobin(_Counting):
    """One after the other."""

    turn = -1

    def send(self, blocks: Sequence[int], n_out: float) -> tuple[int, Any]:
        self.turn += 1
        return self.took(self.turn % len(self.n_running))


class LeastLoaded(_Counting):
    """The engine with the fewest requests."""

    def send(self, blocks: Sequence[int], n_out: float) -> tuple[int, Any]:
        return self.took(min(range(len(self.n_running)), key=self.n_running.__getitem__))


class Consistent(_Counting):
    """Consistent hashing of a prompt's beginning, with bounded loads (Mirrokni et al., 2018)."""

    N_FIRST = 4  # blocks of the beginning
    BOUND = 1.25

    def __init__(self, n: int, room: int) -> None:
        super().__init__(n, room)
        ring = sorted((hash((number, copy)), number) for number in range(n) for copy in range(64))
        self.places, self.owners = [at for at, _ in ring], [number for _, number in ring]

    def send(self, blocks: Sequence[int], n_out: float) -> tuple[int, Any]:
        at = bisect.bisect(self.places, hash(tuple(blocks[: self.N_FIRST])))
        most = self.BOUND * (sum(self.n_running) + 1) / len(self.n_running)
        for step in range(len(self.owners)):
            number = self.owners[(at + step) % len(self.owners)]
            if self.n_running[number] + 1 <= max(1, most):
                break
        return self.took(number)


class CacheAware(_Counting):
    """As SGLang's router: the longest match if it is over a share of the prompt, else the smallest
    tree; the fewest requests where they are far from balanced."""

    THRESHOLD, ABSOLUTE, RELATIVE = 0.3, 64, 1.5

    def __init__(self, n: int, room: int) -> None:
        super().__init__(n, room)
        self.holders = Holders()
        self.trees = [Held(room, self.holders, 1 << number) for number in range(n)]

    def send(self, blocks: Sequence[int], n_out: float) -> tuple[int, Any]:
        most, least = max(self.n_running), min(self.n_running)
        each = range(len(self.trees))
        if most - least > self.ABSOLUTE and most > self.RELATIVE * least:
            number = min(each, key=self.n_running.__getitem__)
        else:
            matched, mask = next(self.holders.levels(blocks), (0, 0))
            number = (mask & -mask).bit_length() - 1
            if matched <= self.THRESHOLD * len(blocks):
                number = min(each, key=lambda each: len(self.trees[each]))
        tree = self.trees[number]
        tree.release(tree.use(blocks))
        return self.took(number)


class Ours:
    """`sgc.runtime.executor.routing`."""

    def __init__(self, n: int, room: int) -> None:
        self.router = Router(BLOCK)
        self.numbers = {self.router.add(str(number), room).name: number for number in range(n)}

    def send(self, blocks: Sequence[int], n_out: float) -> tuple[int, Any]:
        ticket = self.router.send(blocks, n_out)
        return self.numbers[ticket.member.name], ticket

    def done(self, note: Any, found: int) -> None:
        self.router.done(note, found)


POLICIES: dict[str, Any] = {
    "round robin": RoundRobin,
    "least loaded": LeastLoaded,
    "consistent": Consistent,
    "cache aware": CacheAware,
    "sgc": Ours,
}
