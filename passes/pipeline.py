"""The pipelines, read top to bottom, and the manager that runs them.

The verifier runs before the first pass and after each, and is part of the time that a pass is said
to take. What a pass did becomes a receipt in the graph it gives.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from sgc.errors import PassFailed, UsageError
from sgc.ir.graph import Graph, Receipt
from sgc.ir.verify import verify
from sgc.passes import drop_unused, fold_constants, fuse_calls
from sgc.passes.base import Pass

# (pass, before, after, seconds)
Observer = Callable[[Pass, Graph, Graph, float], None]

O0: tuple[Pass, ...] = ()
O1: tuple[Pass, ...] = (
    fold_constants.PASS,
    drop_unused.PASS,
)
O2: tuple[Pass, ...] = (*O1, fuse_calls.PASS)
O3: tuple[Pass, ...] = O2

LEVELS = (O0, O1, O2, O3)
PASSES: dict[str, Pass] = {row.name: row for row in O3}


def optimize(
    graph: Graph,
    level: int = 1,
    names: tuple[str, ...] | None = None,
    observer: Observer | None = None,
) -> Graph:
    """Runs a level's passes, or the named ones in the order given.

    Raises UsageError for an unknown name, VerifyError for a graph that is not sound.
    """
    verify(graph)
    for row in LEVELS[level] if names is None else choose_passes(names):
        graph = run_pass(row, graph, observer)
    return graph


def choose_passes(names: tuple[str, ...]) -> tuple[Pass, ...]:
    unknown = [name for name in names if name not in PASSES]
    if unknown:
        raise UsageError(f"there is no pass {unknown[0]!r}", hint=f"there are: {', '.join(PASSES)}")
    return tuple(PASSES[name] for name in names)


def _rewritten(row: Pass, graph: Graph) -> Graph:
    """What a pass makes of a program and of those that it calls; the same object if nothing."""
    after = row.run(graph)
    called = tuple(map(row.run, graph.called))
    is_same = all(map(operator.is_, called, graph.called))
    return after if is_same else replace(after, called=called)


def run_pass(row: Pass, graph: Graph, observer: Observer | None = None) -> Graph:
    """Raises PassFailed, with the program as it was, if what the pass makes is not sound."""
    start_s = perf_counter()
    try:
        after = _rewritten(row, graph)
        if after is not graph:
            verify(after)
    except Exception as error:
        raise PassFailed(row.name, graph, str(error) or type(error).__name__) from error
    seconds = perf_counter() - start_s
    if after is not graph:
        receipt = Receipt(row.name, row.preserves.value, row.doc, graph.n_nodes, after.n_nodes)
        after = replace(after, receipts=(*graph.receipts, receipt))
    if observer is not None:
        observer(row, graph, after, seconds)
    return after
