"""Folds control flow: removes tests whose outcome is known or makes no difference.

A branch or switch on a literal, or with equal arms, becomes a jump; unreachable blocks are dropped;
a block to which only one jump leads joins the block before it. Using a value that was not set on
the path taken, or that belongs to a child that was cut off, fails: in programs with such values, a
test stays even if its arms are equal, because the test itself may fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from sgc.ir.analysis.dependencies import jump_args, jump_target, successors
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, make_node
from sgc.ir.op_specs import Flag
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.flow import may_miss
from sgc.passes.rewriting import closed, reached, renamed, with_blocks, with_nodes


def fold_flow(graph: Graph) -> Graph:
    if len(graph.blocks) == 1:
        return graph
    is_sure = not any(Flag.UNSURE in node.flags for node in graph.nodes())
    while True:
        folded = _once(graph, is_sure)
        if folded is graph:
            return graph
        graph = folded  # with fewer tests or fewer blocks, so the loop ends


def _once(graph: Graph, is_sure: bool) -> Graph:
    blocks = {block.name: block for block in graph.blocks}
    ends = (_folded(block.nodes[-1], blocks, is_sure) for block in graph.blocks)
    with_ends = (
        with_nodes(block, (*block.nodes[:-1], end))
        for block, end in zip(graph.blocks, ends, strict=True)
    )
    return _joined(_reached(with_blocks(graph, with_ends)))


def _folded(last: Node, blocks: Mapping[str, Block], is_sure: bool) -> Node:
    """The terminator, or the jump that replaces it."""
    target = _decided(last)
    if target is not None:
        return make_node("jump", loc=last.loc, target=Lit(target))
    arms = successors(last)
    if not is_sure or not arms or jump_target(last) is not None or may_miss(last):
        return last
    first = _only_jump(blocks[arms[0]])
    if first is not None and all(_only_jump(blocks[arm]) == first for arm in arms):
        return first
    if len(arms) == 1:
        return make_node("jump", loc=last.loc, target=Lit(arms[0]))
    return last


def _decided(last: Node) -> str | None:
    """The block that a test of a literal leads to; None if the switch fails."""
    if last.op == "branch":
        test = last.get("test")
        return last.text("then" if test.value else "orelse") if isinstance(test, Lit) else None
    if last.op == "switch":
        value, cases, targets = last.get("value"), last.get("cases"), last.get("targets")
        assert isinstance(cases, tuple)
        assert isinstance(targets, tuple)
        if isinstance(value, Lit):
            found = dict(zip(cases, targets, strict=True)).get(value, last.get("default"))
            return str(found.value) or None if isinstance(found, Lit) else None
    return None


def _only_jump(block: Block) -> Node | None:
    """The jump, if it is the block's only node."""
    only = block.nodes[0]
    return only if len(block.nodes) == 1 and jump_target(only) is not None else None


def _reached(graph: Graph) -> Graph:
    after = {block.name: successors(block.nodes[-1]) for block in graph.blocks}
    found = reached([graph.blocks[0].name], after)
    if len(found) == len(graph.blocks):
        return graph
    return with_blocks(graph, (block for block in graph.blocks if block.name in found))


def _joined(graph: Graph) -> Graph:
    """Joins each block with its successors that have no other predecessor."""
    blocks = {block.name: block for block in graph.blocks}
    n_ways = Counter(name for block in graph.blocks for name in successors(block.nodes[-1]))
    following = {
        block.name: target
        for block in graph.blocks
        if (target := jump_target(block.nodes[-1])) is not None
        if n_ways[target] == 1 and target != block.name
    }
    if not following:
        return graph
    names: dict[str, Operand] = {}
    made: list[Block] = []
    swallowed = set(following.values())
    for block in graph.blocks:
        if block.name not in swallowed:
            made.append(_chain(block, blocks, following, names))
    names = closed(names)
    return replace(
        graph,
        blocks=tuple(with_nodes(b, (renamed(node, names) for node in b.nodes)) for b in made),
    )


def _chain(
    block: Block,
    blocks: Mapping[str, Block],
    following: Mapping[str, str],
    names: dict[str, Operand],
) -> Block:
    """A block joined with its followers. names: gets the operands of the followers' parameters."""
    nodes = list(block.nodes)
    name = block.name
    while name in following:
        name = following[name]
        jump = nodes.pop()
        params = (param.name for param in blocks[name].params)
        names.update(zip(params, jump_args(jump), strict=True))
        nodes += blocks[name].nodes
    return replace(block, nodes=tuple(nodes))


PASS = Pass(
    "fold_flow",
    Preserves.REQUESTS,
    fold_flow,
    "redundant tests are removed and blocks joined",
)
