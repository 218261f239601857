"""Marks last uses: generations whose stream no later request continues, on any path.

The engine then first evicts the tokens that only such a generation needed (from the stream's first
draw on, since other rows may share earlier tokens; `executor/hints/last_use.py`). A loop may make
the request again, and so may a committed fork, a stream that shares the generation, and the
interpreter after a `deopt`: in these cases nothing is marked.
"""

from __future__ import annotations

from sgc.ir.analysis.dependencies import handed_on
from sgc.ir.analysis.interpreted import deopts
from sgc.ir.graph import Graph, Lit, Node, Ref
from sgc.ir.op_specs import Flag
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.beginnings import commits
from sgc.passes.rewriting import reached, with_blocks, with_nodes


def mark_last(graph: Graph) -> Graph:
    if deopts(graph.nodes()):
        return graph
    needed = _asked_from(graph)
    return with_blocks(
        graph,
        (with_nodes(block, (_marked(n, needed) for n in block.nodes)) for block in graph.blocks),
    )


def _marked(node: Node, needed: set[str]) -> Node:
    is_last = Flag.ASKS in node.flags and node.results[0].name not in needed
    return node.with_fields(last=Lit(True)) if is_last and not _is_marked(node) else node


def _is_marked(node: Node) -> bool:
    return node.get("last") == Lit(True)


def _asked_from(graph: Graph) -> set[str]:
    """The states that a later request continues, on some path."""
    before: dict[str, list[str]] = {}  # the states that a state continues
    queue: list[str] = []
    for param, arg in handed_on(graph):
        if isinstance(arg, Ref) and param.type.is_stream:
            before.setdefault(param.name, []).append(arg.name)
    for node in graph.nodes():
        continued = [
            operand.name
            for name in ("stream", "end")
            if isinstance(operand := dict(node.fields).get(name), Ref)
        ]
        if Flag.ASKS in node.flags or node.op == "prefetch" or commits(node):
            queue += continued
        if node.op == "append_span" and not node.text("kv"):
            continued = continued[:1]  # only the text of the other stream is used
        for value in node.results:
            if value.type.is_stream:
                before.setdefault(value.name, []).extend(continued)
    return reached(queue, before)


PASS = Pass(
    "mark_last",
    Preserves.REQUESTS,
    mark_last,
    "generations that no later request continues are marked: their tokens are evicted first",
)
