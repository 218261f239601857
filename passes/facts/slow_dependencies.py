"""What stands between the start of a program and each of its values: what is slow.

Generations, choices, calls of tools and maps take long; all else is there when its operands are.
It says what a value or a block waits for on every path to it: one that some path reaches at once
waits for nothing. Sets of slow nodes are bits of a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sgc.ir.analysis.dependencies import downward, jump_args, jump_target, successors
from sgc.ir.graph import Block, Graph, Node, operand_refs
from sgc.ir.op_specs import Flag

SLOW = frozenset({Flag.STOCHASTIC, Flag.HOST})
NEVER = -1  # of what no path leads to: it waits for everything


class Waits:
    """Of a graph that is sound. Linear in it, times its slow nodes over the bits of a word; a graph
    with loops is gone through some times more."""

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
        """What is decided before it is begun."""
        return self._blocks[block.name]

    def of_value(self, name: str) -> int:
        return self._values[name]

    def of_node(self, node: Node, block: Block) -> int:
        """What is there before it starts."""
        return self._blocks[block.name] | self._data(node.refs())

    def _data(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self._values.get(name, NEVER)
        return found

    def _pass(self, blocks: Sequence[Block]) -> bool:
        """Goes through all once; whether that told anything new."""
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
        """What a terminator tells of the blocks after it, and of what it gives them: sets that only
        become smaller."""
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
