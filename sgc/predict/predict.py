"""Predicts what running a program for some rows will use: expected and at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgc.errors import SgcError
from sgc.ir.graph import Graph
from sgc.predict.bounds.ceiling import ceiling_of
from sgc.predict.bounds.cost import Cost
from sgc.predict.dry.dry_run import Row, dry_run, of_row
from sgc.predict.dry.replies import AssumedReplies
from sgc.predict.dry.samples import Samples
from sgc.predict.dry.totals import Totals
from sgc.predict.targets import Target
from sgc.runtime.executor.backends.dry import DryBackend
from sgc.runtime.executor.run.options import RunOptions

TOOL_TOKENS = 32  # assumed for an unknown result of a tool


@dataclass(frozen=True, slots=True)
class Expecting:
    """How runs are made. shares: equal requests are sent once, as from -O1 on; is_warm: an earlier
    run of the same rows is still cached.
    """

    options: RunOptions
    shares: bool = True
    is_warm: bool = False


def expected(
    graph: Graph,
    rows: Sequence[Row],
    target: Target,
    how: Expecting,
    samples: Samples | None = None,
) -> Totals:
    """The total usage of the rows, if replies are as assumed (`replies.py`).

    Raises the first error that ends a row.
    """
    meter = target.meter(graph, how.options, samples)
    is_exact = samples is not None and target.is_exact(samples)
    replies = AssumedReplies(target.capabilities, target.writer(), samples, is_exact)
    tool_text = target.writer().placeholder(TOOL_TOKENS)
    for _ in range(1 + how.is_warm):
        backend = DryBackend(target.capabilities, replies, meter, how.shares)
        found = dry_run(graph, rows, backend, how.options, samples, tool_text)
    return found


def at_most(
    graph: Graph, rows: Sequence[Row], target: Target, options: RunOptions, tool_tokens: float
) -> Cost:
    """The upper bound of the rows' total usage, for any replies. tool_tokens: the most tokens of a
    tool's result.
    """
    asking, total = target.asking(graph), Cost()
    for row in rows:
        try:
            total = total.plus(ceiling_of(graph, row.arguments, asking, options, tool_tokens))
        except SgcError as error:
            raise of_row(error, row, len(rows)) from error
    return total
