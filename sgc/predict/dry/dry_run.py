"""Runs a program on assumed replies, row by row, and adds up what its requests would use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sgc.errors import DeoptReached, SgcError
from sgc.ir.graph import Graph
from sgc.predict.dry.samples import Samples
from sgc.predict.dry.tools import AssumedTools
from sgc.predict.dry.totals import Totals
from sgc.runtime.executor.backends.dry import DryBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.tools import unshown
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions

AT_ONCE = 64  # rows that run together, as in a batch


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a batch. key: its name; arguments: of the program."""

    key: str
    arguments: Mapping[str, Any]


def dry_run(
    graph: Graph,
    rows: Sequence[Row],
    backend: DryBackend,
    options: RunOptions,
    samples: Samples | None = None,
    tool_text: str = "",
) -> Totals:
    """The totals of all rows. options: of the runs; samples: results of tools.

    Raises the first error that ends a row, with the row's key.
    """
    for row in rows:
        if samples is not None:
            samples.assign(row.key, row.arguments)
    return shared.run(_all(graph, rows, backend, options, samples, tool_text))


async def _all(
    graph: Graph,
    rows: Sequence[Row],
    backend: DryBackend,
    options: RunOptions,
    samples: Samples | None,
    tool_text: str,
) -> Totals:
    totals = Totals()

    async def one(row: Row) -> None:
        tools = AssumedTools(row.key, samples, tool_text)
        chosen = replace(options, log=None, row=row.key, allow_tools=tools, ordered_joins=True,
                         on_show=unshown)  # fmt: skip
        try:
            result = await run_graph(graph, backend, row.arguments, chosen)
        except SgcError as error:
            raise of_row(error, row, len(rows)) from error
        totals.add_all(result.requests)
        totals.add_prefetches(result.prefetches)

    for start in range(0, len(rows), AT_ONCE):
        work = map(one, rows[start : start + AT_ONCE])
        for failed in await asyncio.gather(*work, return_exceptions=True):
            if failed is not None:
                raise failed
    return totals


def of_row(error: SgcError, row: Row, n_rows: int) -> SgcError:
    """The error, with its row's key, and a hint where the interpreter would continue."""
    if isinstance(error, DeoptReached):
        error.hint = "what is left to the interpreter is not predicted; give the loop a bound"
    if n_rows > 1:
        error.message = f"row {row.key}: {error.message}"
        error.args = (error.message,)
    return error
