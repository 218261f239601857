"""How many tokens are generated one after another from a node to the end of its program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgc.ir.analysis.dependencies import definitions, downward, successors, uses
from sgc.ir.graph import Graph, Node

TURNS = 4
"""How often a path is assumed to go back, in all of a program's loops together."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """whole: the tokens on the longest path of the program. after: the tokens on the longest path
    after each node, by the node's first result; without the node's own tokens."""

    whole: float
    after: dict[str, float]


def remaining(graph: Graph, tokens: Callable[[Node], float]) -> Remaining:
    """The longest paths of a valid graph, in time linear in its nodes.

    tokens: the number that a node generates. A value's users come after it, in other blocks too; a
    node that does not depend on another runs beside it, not after it. A path takes the longest
    branch, and goes back in loops up to `TURNS` times.
    """
    numbers = {block.name: number for number, block in enumerate(graph.blocks)}
    leaving = _leaving(graph)
    lengths = [0.0] * len(graph.blocks)
    after: dict[str, float] = {}
    for _ in range(1 + TURNS if len(graph.blocks) > 1 else 1):
        before, after = list(lengths), {}
        for number in reversed(downward(graph)):
            nodes = graph.blocks[number].nodes
            following = [numbers[name] for name in successors(nodes[-1])] if nodes else []
            # A later block already has its new length; a block that a path goes back to, its old.
            ends = max((lengths[n] for n in following), default=0.0)
            lengths[number] = _block(nodes, tokens, ends, leaving, after)
        if lengths == before:
            break
    return Remaining(lengths[0] if lengths else 0.0, after)


def _leaving(graph: Graph) -> frozenset[str]:
    """The values that are used outside of the block that defines them."""
    where = definitions(graph)
    return frozenset(
        name
        for name, places in uses(graph).items()
        if name in where and any(place.block != where[name].place.block for place in places)
    )


def _block(
    nodes: tuple[Node, ...],
    tokens: Callable[[Node], float],
    ends: float,
    leaving: frozenset[str],
    after: dict[str, float],
) -> float:
    """The longest path from a block's beginning; adds the block's nodes to `after`. ends: the
    longest path from the block's end."""
    behind: dict[str, float] = {}  # the longest path after each value
    longest = ends
    for node in reversed(nodes):
        names = [value.name for value in node.results]
        least = ends if node.is_terminator or not leaving.isdisjoint(names) else 0.0
        follows = max([least, *(behind.get(name, 0.0) for name in names)])
        if names:
            after[names[0]] = follows
        length = follows + tokens(node)
        for name in node.refs():
            behind[name] = max(behind.get(name, 0.0), length)
        longest = max(longest, length)
    return longest
