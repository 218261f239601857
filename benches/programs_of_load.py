"""Programs of `program_load.py`: their calls, and when they arrive.

The shapes are those of the papers on serving programs. Lengths are drawn from log-normal
distributions, as replies of models are; what a client expects is the distribution's mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

VOCAB = 512
_SPREAD = 0.6  # of the logarithm of a length
_HEAVY = 1.2
_BURST = 10  # programs that arrive together, on average, if heavy


@dataclass(frozen=True, slots=True)
class Call:
    """after: earlier calls that must have ended; wait_s: a tool's time after them. base: the call
    whose prompt and reply the prompt continues, None for the program's beginning. n_new: tokens
    appended to it. n_out: generated; n_expected: as a client expects."""

    after: tuple[int, ...]
    base: int | None
    n_new: int
    n_out: int
    n_expected: int
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Program:
    """beginning: tokens of its first prompts, shared with others of its shape and group."""

    at_s: float
    shape: str
    beginning: tuple[int, ...]
    calls: tuple[Call, ...]

    def remaining(self, is_told: bool) -> list[int]:
        """Tokens on the longest path from each call's beginning to the end. is_told: as they will
        be, else as expected."""
        left = [0] * len(self.calls)
        for number in reversed(range(len(self.calls))):
            users = [i for i, call in enumerate(self.calls) if number in call.after]
            call = self.calls[number]
            own = call.n_out if is_told else call.n_expected
            left[number] = own + max((left[i] for i in users), default=0)
        return left


class _Drawn:
    """Draws the calls of one program."""

    def __init__(self, rng: np.random.Generator, spread: float) -> None:
        self.rng, self.spread = rng, spread
        self.calls: list[Call] = []

    def call(
        self, after: Sequence[int], base: int | None, n_new: int, mean: int, wait_s: float = 0.0
    ) -> int:
        scale = self.rng.lognormal(-(self.spread**2) / 2, self.spread)
        n_out = max(1, min(4 * mean, round(mean * scale))) if mean > 2 else mean
        self.calls.append(Call(tuple(after), base, n_new, n_out, mean, wait_s))
        return len(self.calls) - 1

    def size(self, mean: float, most: int) -> int:
        return 1 + min(most - 1, int(self.rng.geometric(1 / mean)))


def essay_judge(draw: _Drawn) -> None:
    judged = [draw.call([], None, 24, 64) for _ in range(6)]
    draw.call(judged, judged[0], 32 + 6 * 16, 96)


def tree_of_thought(draw: _Drawn) -> None:
    rated = []
    for _ in range(3):
        plan = draw.call([], None, 16, 48)
        for _ in range(2):
            way = draw.call([plan], plan, 16, 64)
            rated.append(draw.call([way], way, 12, 2))
    draw.call(rated, None, 64, 96)


def chains(draw: _Drawn) -> None:
    ends = [draw.call([], None, 12, 128) for _ in range(5)]
    draw.call(ends, None, 96, 16)


def agent(draw: _Drawn) -> None:
    last: int | None = None
    for _ in range(draw.size(5, 16)):
        wait_s = 0.0 if last is None else float(draw.rng.uniform(0.2, 2.0))
        last = draw.call([] if last is None else [last], last, 40, 40, wait_s)
    assert last is not None
    draw.call([last], last, 16, 80)


def map_reduce(draw: _Drawn) -> None:
    parts = [draw.call([], None, 160, 48) for _ in range(draw.size(6, 24))]
    draw.call(parts, None, 32 * min(len(parts), 12), 128)


def choice(draw: _Drawn) -> None:
    draw.call([], None, 48, 2)


SHAPES: dict[str, Callable[[_Drawn], None]] = {
    "essay_judge": essay_judge,
    "tree_of_thought": tree_of_thought,
    "chains": chains,
    "agent": agent,
    "map_reduce": map_reduce,
    "choice": choice,
}
N_BEGINNING = {"choice": 512, "agent": 256, "essay_judge": 192}  # of others, 96
N_GROUPS = 4  # beginnings of each shape
N_OWN = 32


def programs(seed: int, n: int, rate: float, is_heavy: bool = False) -> list[Program]:
    """n programs of all shapes alike, in Poisson arrivals of a rate a second; if heavy, in bursts
    and with lengths that spread further."""
    rng = np.random.default_rng(seed)
    shared = {
        (shape, group): tuple(rng.integers(3, VOCAB, N_BEGINNING.get(shape, 96)).tolist())
        for shape in SHAPES
        for group in range(N_GROUPS)
    }
    at_s = _arrivals(rng, n, rate, _BURST if is_heavy else 1)
    names = list(SHAPES)
    found = []
    for at in at_s:
        shape = names[rng.integers(len(names))]
        draw = _Drawn(rng, _HEAVY if is_heavy else _SPREAD)
        SHAPES[shape](draw)
        own = tuple(rng.integers(3, VOCAB, N_OWN).tolist())
        beginning = shared[shape, int(rng.integers(N_GROUPS))] + own
        found.append(Program(at, shape, beginning, tuple(draw.calls)))
    return found


def _arrivals(rng: np.random.Generator, n: int, rate: float, burst: int) -> list[float]:
    sizes = rng.geometric(1 / burst, n)  # at least one a burst, so there are enough
    starts = np.cumsum(rng.exponential(burst / rate, n))
    return [float(at) for at in np.repeat(starts, sizes)[:n]]
