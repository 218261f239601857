"""Drops pure nodes whose results nothing uses, such as a text that was read and not kept.

Streams and generations stay: what a program asked for is part of its result.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sgc.ir.graph import Block, Graph, Node
from sgc.ir.ops import Flag
from sgc.passes.base import Pass, Preserves


def drop_unused(graph: Graph) -> Graph:
    uses = Counter(name for node in graph.nodes() for name in node.refs())
    blocks = tuple(_drop(block, uses) for block in graph.blocks)
    return graph if blocks == graph.blocks else replace(graph, blocks=blocks)


def _drop(block: Block, uses: Counter[str]) -> Block:
    kept: list[Node] = []
    # Backwards, so that what only a dropped node used is dropped in the same sweep.
    for node in reversed(block.nodes):
        if _is_droppable(node) and not any(uses[value.name] for value in node.results):
            uses.subtract(node.refs())
        else:
            kept.append(node)
    kept.reverse()
    return block if len(kept) == len(block.nodes) else replace(block, nodes=tuple(kept))


def _is_droppable(node: Node) -> bool:
    return Flag.PURE in node.spec.flags and node.op != "stream"


PASS = Pass("drop_unused", Preserves.REQUESTS, drop_unused, "values that nothing reads are dropped")
