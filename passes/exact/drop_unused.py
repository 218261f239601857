"""Drops pure nodes whose results nothing uses, such as a text that was read but not used.

Streams and generations stay: they are part of the result.
"""

from __future__ import annotations

from collections import Counter

from sgc.ir.graph import Graph, Node
from sgc.ir.op_specs import Flag
from sgc.passes.base import Pass, Preserves
from sgc.passes.rewriting import with_blocks, with_nodes


def drop_unused(graph: Graph) -> Graph:
    uses = Counter(name for node in graph.nodes() for name in node.refs())
    makers = {value.name: node for node in graph.nodes() for value in node.results}
    dropped: set[int] = set()
    queue = [node for node in graph.nodes() if _is_droppable(node)]
    while queue:
        node = queue.pop()
        if id(node) in dropped or any(uses[value.name] for value in node.results):
            continue
        dropped.add(id(node))
        for name in node.refs():
            uses[name] -= 1
            if not uses[name] and name in makers and _is_droppable(makers[name]):
                queue.append(makers[name])
    return with_blocks(
        graph,
        (
            with_nodes(block, (n for n in block.nodes if id(n) not in dropped))
            for block in graph.blocks
        ),
    )


def _is_droppable(node: Node) -> bool:
    return Flag.PURE in node.flags and Flag.BEGINS not in node.flags


PASS = Pass("drop_unused", Preserves.REQUESTS, drop_unused, "values that nothing reads are dropped")
