"""The pipelines, read top to bottom, and the manager that runs them.

The verifier runs before the first pass and after each pass, and its time counts as the pass's. The
changes of a pass are recorded as a receipt in the resulting graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from sgc.errors import PassFailed, UsageError, closest
from sgc.ir.analysis.interpreted import deopts
from sgc.ir.graph import Graph
from sgc.ir.verify import verify
from sgc.passes.base import Pass, Preserves
from sgc.passes.changing import fuse_calls, hoist_prefix, tighten_max_tokens
from sgc.passes.exact import (
    drop_dead,
    drop_unused,
    fold_constants,
    fold_flow,
    fold_values,
    forward_params,
    share_equal,
)
from sgc.passes.hints import insert_prefetch, mark_last, place_caches, start_early
from sgc.passes.receipts import receipt_of

# (pass, before, after, seconds)
Observer = Callable[[Pass, Graph, Graph, float], None]

O0: tuple[Pass, ...] = ()
O1: tuple[Pass, ...] = (
    fold_constants.PASS,
    forward_params.PASS,
    fold_values.PASS,
    fold_flow.PASS,
    share_equal.PASS,
    drop_unused.PASS,
    drop_dead.PASS,
    start_early.PASS,
    insert_prefetch.PASS,
    mark_last.PASS,
)
O2: tuple[Pass, ...] = (*O1, fuse_calls.PASS)
# Comes first, so that the other passes see the final prompts.
O3: tuple[Pass, ...] = (hoist_prefix.PASS, *O2)

LEVELS = (O0, O1, O2, O3)
# Run only by name: they are valid only for some options of a run, which the program does not show.
NAMED: tuple[Pass, ...] = (tighten_max_tokens.PASS,)
PASSES: dict[str, Pass] = {row.name: row for row in (*O3, *NAMED)}


def optimize(
    graph: Graph,
    level: int = 1,
    names: tuple[str, ...] | None = None,
    observer: Observer | None = None,
    target: tuple[Pass, ...] = (),
) -> Graph:
    """Runs a level's passes, or the named ones in the order given.

    target: passes made for one model (`place_caches.for_rules`); they run last, except at -O0, and
    may be named. For a program that may continue in the interpreter, a level runs only passes that
    preserve requests: the interpreter is fed with the compiled part's replies. Raises UsageError
    for an unknown name, VerifyError for an invalid graph.
    """
    verify(graph)
    of_level = (*_rows_of(level, graph), *(target if level else ()))
    for row in of_level if names is None else choose_passes(names, target):
        graph = run_pass(row, graph, observer)
    return graph


def _rows_of(level: int, graph: Graph) -> tuple[Pass, ...]:
    rows = LEVELS[level]
    if deopts(graph.all_nodes()):
        return tuple(row for row in rows if row.preserves is Preserves.REQUESTS)
    return rows


def choose_passes(names: tuple[str, ...], target: tuple[Pass, ...] = ()) -> tuple[Pass, ...]:
    known = PASSES | {row.name: row for row in target}
    unknown = [name for name in names if name not in known]
    if place_caches.NAME in unknown:
        raise UsageError(f"{place_caches.NAME} is for a model", hint="--for anthropic:MODEL")
    if unknown:
        raise UsageError(
            f"there is no pass {unknown[0]!r}{closest(unknown[0], known)}",
            hint=f"there are: {', '.join(known)}",
        )
    return tuple(known[name] for name in names)


def rewritten(row: Pass, graph: Graph) -> Graph:
    """The result of a pass on a program and the programs it calls; the same object if unchanged.

    The result is not verified and has no receipt.
    """
    after = row.run(graph)
    if row.whole:
        return after
    called = tuple(map(row.run, graph.called))
    is_same = all(map(operator.is_, called, graph.called))
    return after if is_same else replace(after, called=called)


def run_pass(row: Pass, graph: Graph, observer: Observer | None = None) -> Graph:
    """Runs a pass and verifies its result; raises PassFailed, with the old program."""
    start_s = perf_counter()
    try:
        after = rewritten(row, graph)
        if after is not graph:
            verify(after)
            receipt = receipt_of(row, graph, after)
    except Exception as error:
        raise PassFailed(row.name, graph, str(error) or type(error).__name__) from error
    seconds = perf_counter() - start_s
    if after is not graph:
        after = replace(after, receipts=(*graph.receipts, receipt))
    if observer is not None:
        observer(row, graph, after, seconds)
    return after
