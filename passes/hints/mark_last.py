"""Marks last uses: generations whose stream no later node asks from, on any way.

The engine then evicts first what only such a generation needed (from the stream's first draw on:
what comes before may be another row's too; `executor/run/last_use.py`). A loop that comes back
asks again, and so does a fork that is committed, a stream that shares the generation, and the
interpreter where a program ends in `deopt`: there nothing is marked.
"""

from __future__ import annotations

from sgc.ir.graph import Graph, Lit, Node, Ref
from sgc.passes.base import Pass, Preserves
from sgc.passes.rewriting import jump_args, reached, with_blocks, with_nodes

_ASKS = frozenset({"gen", "gen_n", "select"})


def mark_last(graph: Graph) -> Graph:
    if any(node.op == "deopt" for node in graph.nodes()):
        return graph
    needed = _asked_from(graph)
    return with_blocks(
        graph,
        (with_nodes(block, (_marked(n, needed) for n in block.nodes)) for block in graph.blocks),
    )


def _marked(node: Node, needed: set[str]) -> Node:
    is_last = node.op in _ASKS and node.results[0].name not in needed
    return node.with_fields(last=Lit(True)) if is_last and not _is_marked(node) else node


def _is_marked(node: Node) -> bool:
    return node.get("last") == Lit(True)


def _asked_from(graph: Graph) -> set[str]:
    """The states whose prompts a later request begins with, on some way."""
    before: dict[str, list[str]] = {}  # what a state continues
    queue: list[str] = []
    params = {block.name: block.params for block in graph.blocks}
    for node in graph.nodes():
        if node.op == "jump":
            for param, arg in zip(params[node.text("target")], jump_args(node), strict=True):
                if isinstance(arg, Ref) and param.type.is_stream:
                    before.setdefault(param.name, []).append(arg.name)
            continue
        continued = [
            operand.name
            for name in ("stream", "end")
            if isinstance(operand := dict(node.fields).get(name), Ref)
        ]
        if node.op in _ASKS or node.op == "prefetch" or _is_committed(node):
            queue += continued
        if node.op == "append_span":
            continued = continued[:1]  # of the other stream it is text alone
        for value in node.results:
            if value.type.is_stream:
                before.setdefault(value.name, []).extend(continued)
    return reached(queue, before)


def _is_committed(node: Node) -> bool:
    """Whether the executor commits a fork's trunk."""
    return node.op == "fork" and node.get("n") != Lit(1)


PASS = Pass(
    "mark_last",
    Preserves.REQUESTS,
    mark_last,
    "generations that nothing goes on from are marked, so that their tokens are evicted first",
)
