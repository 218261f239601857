"""Predicts what each pass saves, with dry runs of the program before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgc.ir.graph import Graph, Receipt
from sgc.passes.base import Pass
from sgc.passes.pipeline import optimize
from sgc.predict.dry.dry_run import Row
from sgc.predict.dry.samples import Samples
from sgc.predict.dry.totals import Total
from sgc.predict.predict import Expecting, expected
from sgc.predict.targets import Target


@dataclass(frozen=True, slots=True)
class Step:
    """A pass that changed the program, and its result."""

    receipt: Receipt
    after: Graph


@dataclass(frozen=True, slots=True)
class Gain:
    """The total usage of the rows before and after a pass."""

    receipt: Receipt
    before: Total
    after: Total


def steps_of(graph: Graph, level: int) -> tuple[Graph, tuple[Step, ...]]:
    """The program after a level's passes, and the passes that changed it."""
    steps: list[Step] = []

    def observe(row: Pass, before: Graph, after: Graph, seconds: float) -> None:
        if after is not before:
            steps.append(Step(after.receipts[-1], after))

    return optimize(graph, level, observer=observe), tuple(steps)


def gains(
    graph: Graph,
    steps: Sequence[Step],
    rows: Sequence[Row],
    target: Target,
    how: Expecting,
    samples: Samples | None = None,
) -> list[Gain]:
    """The gain of each step, beginning with the program before the first. Sharing of equal requests
    (`how.shares`) is the same in all of them, so that a gain is the pass's own.
    """
    before = expected(graph, rows, target, how, samples).total
    found = []
    for step in steps:
        after = expected(step.after, rows, target, how, samples).total
        found.append(Gain(step.receipt, before, after))
        before = after
    return found
