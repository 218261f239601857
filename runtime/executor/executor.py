"""Runs a graph on a backend: binds arguments, submits every node, waits for the result."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Mapping
from typing import Any

from sgc.ir.analysis.host_calls import without_pieces
from sgc.ir.graph import Graph
from sgc.runtime.executor.functions.sharing import Sharing
from sgc.runtime.executor.instance import Instance
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.interface.tools import ToolImpl
from sgc.runtime.executor.log.run_log import header_of
from sgc.runtime.executor.run.context import Context, OnBlock, OnText
from sgc.runtime.executor.run.map_places import Called
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


async def run_graph(
    graph: Graph,
    backend: Backend,
    arguments: Mapping[str, Any],
    options: RunOptions | None = None,
    on_text: OnText | None = None,
    row: str | None = None,
    tools: Iterable[ToolImpl] = (),
    python: contextvars.Context | None = None,
    on_block: OnBlock | None = None,
) -> RunResult:
    """Runs a verified program once.

    row: the key of its row, in place of `options.row`; tools: the program's own; python: the
    context of the caller, in which pieces of its source run; on_block: called with each block that
    runs, also in mapped calls. Raises ArgumentError, or ToolError for a tool that is not allowed,
    before any request; later the first error of the run, with the user's line. Cancelling it
    cancels its requests at the backend.
    """
    tools = tuple(tools)
    graph = without_pieces(graph, {(each.name, each.signature) for each in tools})
    values = bind_arguments(graph, arguments)
    capabilities = await backend.capabilities()
    options = options or RunOptions()
    called = Called.of(graph)
    has_code = any(node.op == "evaluate" for node in graph.all_nodes())
    context = Context.of(
        graph.name, backend, capabilities, options, on_text, row, called,
        Sharing(graph) if has_code else None, on_block,
    )  # fmt: skip
    run = Instance(context, values)
    try:
        if options.log is not None:
            header = header_of(graph.name, graph.guards, options)
            options.log.begin(header, context.row, arguments, capabilities)
        run.tools.allow(tools, python)
        if options.log is None or not options.log.is_replay:
            run.tools.check(graph.all_nodes())
        run.start(graph)
        return await run.finished
    finally:
        run.cancel()
        await run.settle()
