"""Runs a graph on a backend: binds arguments, submits every node, waits for the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.ir.graph import Graph
from sgc.runtime.executor.arguments import bind_arguments
from sgc.runtime.executor.backend import Backend
from sgc.runtime.executor.instance import Instance, OnText
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.plan import plan_of
from sgc.runtime.executor.record import RunResult


async def run_graph(
    graph: Graph,
    backend: Backend,
    arguments: Mapping[str, Any],
    options: RunOptions | None = None,
    on_text: OnText | None = None,
    row: str | None = None,
) -> RunResult:
    """Runs a verified straight-line program once. row: its key, instead of the options'.

    Raises ArgumentError before anything is asked, else the first error with the user's
    line. Cancelling it cancels its requests at the backend.
    """
    values = bind_arguments(graph, arguments)
    capabilities = await backend.capabilities()
    run = Instance(graph.name, backend, capabilities, options or RunOptions(), values, on_text, row)
    try:
        run.submit_all(plan_of(graph.blocks[0].nodes))
        return await run.finished
    finally:
        run.cancel()
        await run.settle()
