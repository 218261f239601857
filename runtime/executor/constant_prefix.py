"""The constant prefix of a graph: the prompt that its every run begins with, for any arguments."""

from __future__ import annotations

from sgc.ir.graph import Graph, Ref
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.instance import Instance
from sgc.runtime.executor.interface.backend import Backend, Prompt
from sgc.runtime.executor.ops.handlers import HANDLERS
from sgc.runtime.executor.run.context import Context
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.stream import StreamState


async def commit_constant_prefix(graph: Graph, backend: Backend) -> None:
    """Makes a backend compute and cache the constant prefix of the main stream, if any."""
    prompt = await constant_prefix(graph, backend)
    if prompt:
        await backend.commit_prefix(prompt)


async def constant_prefix(graph: Graph, backend: Backend) -> Prompt:
    """Returns the constant prefix of the main stream, in the backend's chat template."""
    context = Context.of(graph.name, backend, await backend.capabilities(), RunOptions())
    run = Instance(context, {})
    state: StreamState | None = None
    at = ""
    for node in graph.blocks[0].nodes:
        if node.op == "prefetch":
            continue
        is_first = state is None and node.op == "stream"
        if not is_first and (Flag.CONSTANT not in node.flags or node.get("stream") != Ref(at)):
            break
        (state,) = HANDLERS[node.op](run, node)
        at = node.results[0].name
        run.define(at, state)
    return () if state is None else context.prompt(state)
