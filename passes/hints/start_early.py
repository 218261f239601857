"""Starts nodes before the tests that they do not depend on.

The executor starts a block's nodes as soon as their operands are ready, but begins a block only
once the test before it is decided. So a node that runs on every path from an earlier block moves up
to the first such block in which its operands are defined, if that lets a request or a call of a
pure tool start earlier.

Nothing moves past a node that may end the run (`fail`, `return` and `deopt` in an arm, the bound of
a loop, a switch without a default), and nothing moves out of or into a loop. Streams begin and
tools are counted in the same order as before, so paths, seeds and logs are unchanged. Effects,
joins that take the first children, and maps do not move.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from sgc.ir.analysis.host_calls import has_effect
from sgc.ir.graph import Block, Graph, Node
from sgc.ir.op_specs import Flag
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.flow import Regions
from sgc.passes.facts.slow_dependencies import SLOW
from sgc.passes.rewriting import with_blocks, with_nodes

_SLOW = SLOW | {Flag.MEDIA}  # media read a file
_MOVES = frozenset({Flag.PURE, Flag.APPENDS})
_COUNTED = frozenset({Flag.HOST, Flag.CALLS})


def start_early(graph: Graph) -> Graph:
    if len(graph.blocks) == 1:
        return graph
    regions = Regions(graph)
    moves = _Moves(graph, regions)
    for row in regions.rows():
        moves.plan(row)
    return moves.made()


class _Moves:
    """Plans the moves. A row: blocks that each path passes either all, in order, or not at all."""

    def __init__(self, graph: Graph, regions: Regions) -> None:
        self._graph = graph
        self._regions = regions
        self._home = {param.value.name: 0 for param in graph.params}  # a block per value
        for number, block in enumerate(graph.blocks):
            self._home.update(dict.fromkeys(_defined(block), number))
        self._kept = [list(block.nodes[:-1]) for block in graph.blocks]
        self._added: list[list[Node]] = [[] for _ in graph.blocks]
        self._counts = tuple(
            _Count(regions, [sum(map(is_one, block.nodes)) for block in graph.blocks], is_one)
            for is_one in (_begins_streams, _is_counted)
        )

    def plan(self, row: list[int]) -> None:
        """Moves nodes within a row, if that lets something slow start earlier."""
        moved: list[tuple[Node, int]] = []
        homes: dict[str, int] = {}  # the old blocks of moved values
        firsts = [0] * len(self._counts)  # the first place for the next counted node
        kept = {number: self._kept[number] for number in row}
        for place, number in enumerate(row):
            left = []
            if place:
                for n, count in enumerate(self._counts):
                    if count.between(row[place - 1], number):
                        firsts[n] = place
            for node in self._kept[number]:
                to = self._first(row, place, node) if _may_move(node) else place
                for n, count in enumerate(self._counts):
                    if count.is_one(node):
                        to = firsts[n] = max(to, firsts[n])
                if to == place:
                    left.append(node)
                    continue
                moved.append((node, row[to]))
                for value in node.results:
                    homes[value.name] = number
                    self._home[value.name] = row[to]
            kept[number] = left
        if not any(node.flags & _SLOW for node, _ in moved):
            self._home.update(homes)
            return
        for node, to in moved:
            self._added[to].append(node)
        for number in row:
            self._kept[number] = kept[number]

    def _first(self, row: list[int], place: int, node: Node) -> int:
        """The index of the first block of a row in which a node's operands are defined."""
        above = (self._home[name] for name in node.refs())
        deepest = max(above, key=self._regions.depth, default=0)
        places = range(place + 1)
        return bisect_left(places, True, key=lambda n: self._regions.is_above(deepest, row[n]))

    def made(self) -> Graph:
        blocks = (
            with_nodes(block, (*kept, *added, block.nodes[-1]))
            for block, kept, added in zip(self._graph.blocks, self._kept, self._added, strict=True)
        )
        return with_blocks(self._graph, blocks)


class _Count:
    """Counts the nodes whose order determines names, on the paths between two blocks."""

    def __init__(self, regions: Regions, own: list[int], is_one: Callable[[Node], bool]) -> None:
        self._own, self._sums, self.is_one = own, regions.sums(own), is_one

    def between(self, above: int, below: int) -> int:
        return self._sums[above] - self._own[above] - self._sums[below]


def _defined(block: Block) -> Iterator[str]:
    yield from (param.name for param in block.params)
    yield from (value.name for node in block.nodes for value in node.results)


def _may_move(node: Node) -> bool:
    if Flag.HOST in node.flags:
        return not has_effect(node)
    return Flag.TIMED not in node.flags and bool(node.flags & _MOVES)


def _begins_streams(node: Node) -> bool:
    return Flag.BEGINS in node.flags


def _is_counted(node: Node) -> bool:
    return bool(node.flags & _COUNTED)


PASS = Pass(
    "start_early",
    Preserves.REQUESTS,
    start_early,
    "what does not depend on a test starts before it",
)
