"""The slow nodes that each value of a program waits for.

Generations, choices, calls of tools and maps are slow; all other nodes are done as soon as their
operands are ready. A value or block waits for the slow nodes that are on every path to it: if some
path reaches it at once, it waits for nothing. Sets of slow nodes are bit sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sgc.ir.analysis.dependencies import downward, jump_args, jump_target, successors
from sgc.ir.graph import Block, Graph, Node, operand_refs
from sgc.ir.op_specs import Flag

SLOW = frozenset({Flag.STOCHASTIC, Flag.HOST})
NEVER = -1  # for unreachable nodes, which wait for everything


class Waits:
    """The waits of a valid graph, in time linear in the graph, times the number of slow nodes per
    machine word; loops need a few more passes."""

    def __init__(self, graph: Graph) -> None:
        self._params = {block.name: block.params for block in graph.blocks}
        self._bits: dict[int, int] = {}
        for node in graph.nodes():
            if node.flags & SLOW:
                self._bits[id(node)] = 1 << len(self._bits)
        self._blocks = {block.name: NEVER for block in graph.blocks} | {graph.blocks[0].name: 0}
        self._values = {param.value.name: 0 for param in graph.params}
        self._values |= {value.name: NEVER for block in graph.blocks for value in block.params}
        blocks = [graph.blocks[number] for number in downward(graph)]
        while self._pass(blocks):
            pass

    def of_block(self, block: Block) -> int:
        """The slow nodes that are done before a block begins."""
        return self._blocks[block.name]

    def of_value(self, name: str) -> int:
        return self._values[name]

    def of_node(self, node: Node, block: Block) -> int:
        """The slow nodes that are done before a node starts."""
        return self._blocks[block.name] | self._data(node.refs())

    def _data(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self._values.get(name, NEVER)
        return found

    def _pass(self, blocks: Sequence[Block]) -> bool:
        """Visits all blocks once; returns whether anything changed."""
        is_new = False
        for block in blocks:
            for node in block.nodes:
                if node.is_terminator:
                    is_new |= self._hand_on(node, block)
                    continue
                waits = self._data(node.refs()) | self._bits.get(id(node), 0)
                for value in node.results:
                    is_new |= self._values.get(value.name) != waits
                    self._values[value.name] = waits
        return is_new

    def _hand_on(self, last: Node, block: Block) -> bool:
        """Intersects the sets of the next blocks and their parameters with those at a
        terminator."""
        target, is_new = jump_target(last), False
        tested = 0 if target is not None else self._data(last.refs())
        for name in successors(last):
            waits = self._blocks[name] & (self._blocks[block.name] | tested)
            is_new |= waits != self._blocks[name]
            self._blocks[name] = waits
        if target is not None:
            for param, arg in zip(self._params[target], jump_args(last), strict=True):
                waits = self._values[param.name] & self._data(operand_refs(arg))
                is_new |= waits != self._values[param.name]
                self._values[param.name] = waits
        return is_new
