"""Rewriting of nodes and blocks, shared by several passes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sgc.ir.analysis.dependencies import jump_args
from sgc.ir.graph import Block, Graph, Node, Operand, Ref


def renamed(node: Node, names: Mapping[str, Operand]) -> Node:
    """The node with values replaced by operands; the same object if it uses no such value."""
    if not names or not any(name in names for name in node.refs()):
        return node
    return replace(node, fields=tuple((key, operand(op, names)) for key, op in node.fields))


def operand(given: Operand, names: Mapping[str, Operand]) -> Operand:
    """An operand with values replaced by operands."""
    if isinstance(given, Ref):
        return names.get(given.name, given)
    if isinstance(given, tuple):
        return tuple(operand(item, names) for item in given)
    return given


def closed(names: dict[str, Operand]) -> dict[str, Operand]:
    """The same mapping with chains resolved; it must have no cycle."""
    found: dict[str, Operand] = {}
    for name in names:
        steps = [name]
        while True:
            given = found.get(steps[-1]) or names[steps[-1]]
            if not isinstance(given, Ref) or given.name not in names:
                break
            steps.append(given.name)
        found.update(dict.fromkeys(steps, given))
    return found


def with_nodes(block: Block, nodes: Iterable[Node]) -> Block:
    """The block with these nodes; the same object if they are its own."""
    made = tuple(nodes)
    is_same = len(made) == len(block.nodes) and all(map(operator.is_, made, block.nodes))
    return block if is_same else replace(block, nodes=made)


def with_blocks(graph: Graph, blocks: Iterable[Block]) -> Graph:
    """The graph with these blocks; the same object if they are its own."""
    made = tuple(blocks)
    is_same = len(made) == len(graph.blocks) and all(map(operator.is_, made, graph.blocks))
    return graph if is_same else replace(graph, blocks=made)


def handing_on(jump: Node, is_kept: Sequence[bool]) -> Node:
    """A jump that passes only the kept values; the same object if it passes all."""
    if all(is_kept):
        return jump
    args = tuple(arg for arg, kept in zip(jump_args(jump), is_kept, strict=True) if kept)
    fields = tuple(field for field in jump.fields if field[0] != "args")
    return replace(jump, fields=fields).with_fields(**({"args": args} if args else {}))


def reached(names: Iterable[str], after: Mapping[str, Iterable[str]]) -> set[str]:
    """The names, and all names that are reachable from them."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += after.get(name, ())
    return found
