"""Replaces block parameters that have the same value on every path by that value.

A parameter for which every jump passes one value (or the parameter itself, in a loop) becomes that
value: its users need not wait for the test before the block, and other passes see where the value
comes from.
"""

from __future__ import annotations

from dataclasses import replace

from sgc.ir.analysis.dependencies import handed_on, jump_target
from sgc.ir.graph import Graph, Lit, Operand, Ref, Value
from sgc.ir.types import Kind
from sgc.passes.base import Pass, Preserves
from sgc.passes.rewriting import closed, handing_on, renamed, with_blocks, with_nodes

# Literals of other kinds are not allowed everywhere that a value is allowed.
_LITERALS = {str: Kind.TEXT, bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT}


def forward_params(graph: Graph) -> Graph:
    params = {block.name: block.params for block in graph.blocks}
    given: dict[str, list[Operand]] = {p.name: [] for block in graph.blocks for p in block.params}
    values = {p.name: p for block in graph.blocks for p in block.params}
    for param, arg in handed_on(graph):
        given[param.name].append(arg)
    names = _same(given, values)
    if not names:
        return graph
    is_kept = {name: [param.name not in names for param in some] for name, some in params.items()}
    blocks = []
    for block in graph.blocks:
        kept = (p for p, is_own in zip(block.params, is_kept[block.name], strict=True) if is_own)
        *nodes, last = block.nodes
        target = jump_target(last)
        nodes.append(last if target is None else handing_on(last, is_kept[target]))
        nodes = [renamed(node, names) for node in nodes]
        blocks.append(with_nodes(replace(block, params=tuple(kept)), nodes))
    return with_blocks(graph, blocks)


def _same(given: dict[str, list[Operand]], values: dict[str, Value]) -> dict[str, Operand]:
    """The operand that each redundant parameter stands for."""
    users: dict[str, list[str]] = {}
    for name, args in given.items():
        for arg in args:
            if isinstance(arg, Ref):
                users.setdefault(arg.name, []).append(name)
    names: dict[str, Operand] = {}
    queue = list(given)
    while queue:
        name = queue.pop()
        if name in names:
            continue
        found = {_resolved(arg, names) for arg in given[name]} - {Ref(name)}
        if len(found) != 1:
            continue
        (only,) = found
        if isinstance(only, Ref) or _is_alike(only, values[name]):
            names[name] = only
            queue += users.get(name, ())
    return closed(names)


def _resolved(operand: Operand, names: dict[str, Operand]) -> Operand:
    """The operand that `operand` stands for, with path compression."""
    steps = []
    while isinstance(operand, Ref) and operand.name in names:
        steps.append(operand.name)
        operand = names[operand.name]
    names.update(dict.fromkeys(steps, operand))
    return operand


def _is_alike(operand: Operand, value: Value) -> bool:
    return isinstance(operand, Lit) and _LITERALS.get(type(operand.value)) is value.type.kind


PASS = Pass(
    "forward_params",
    Preserves.REQUESTS,
    forward_params,
    "parameters with the same value on every path are replaced by it",
)
