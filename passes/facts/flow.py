"""The control flow of a graph for passes: blocks that run on every path, and those between."""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.analysis.dependencies import Tree, successors
from sgc.ir.analysis.flow import Following, dominators, following, is_loop, parts, reached
from sgc.ir.graph import Block, Graph, Node


class Regions:
    """Dominators, post-dominators and loops of a graph of several blocks, by block number.

    Unreachable blocks are in no row.
    """

    def __init__(self, graph: Graph) -> None:
        flow = following(graph)
        self._above = dominators(flow)
        self._tree, self._below = _tree(self._above, 0)
        end = len(flow)  # of every run, as a block of its own
        self._after = _tree(_post_dominators(graph, flow, end), end)[0]
        self._loops = {block for part in parts(flow) if is_loop(part, flow) for block in part}
        self._depths = {0: 0}
        for block in self._down():
            for child in self._below.get(block, ()):
                self._depths[child] = self._depths[block] + 1

    def rows(self) -> Iterator[list[int]]:
        """Rows of two or more blocks: each run passes either all blocks of a row, once and in this
        order, or none."""
        after: dict[int, int] = {}
        outside: dict[int, int] = {}  # the block, or its nearest dominator outside loops
        for block in self._down():
            above = self._above.get(block, block)
            is_inside = block in self._loops and above != block
            outside[block] = outside[above] if is_inside else block
            if above == block:
                continue
            above = outside[above]
            is_sure = self._after.is_at_or_above(str(block), str(above))
            if is_sure and block not in self._loops and above not in self._loops:
                after[above] = block
        for first in sorted(after.keys() - set(after.values())):
            row = [first]
            while row[-1] in after:
                row.append(after[row[-1]])
            yield row

    def is_above(self, upper: int, lower: int) -> bool:
        """Whether `upper` dominates `lower`; a block dominates itself."""
        return self._tree.is_at_or_above(str(upper), str(lower))

    def depth(self, block: int) -> int:
        """The number of blocks that every path to a block passes."""
        return self._depths[block]

    def sums(self, counts: list[int]) -> list[int]:
        """For each block, the sum of the counts of the blocks that it dominates, itself too."""
        found = list(counts)
        for block in reversed(list(self._down())):
            if block in self._above:
                found[self._above[block]] += found[block]
        return found

    def _down(self) -> Iterator[int]:
        """The reachable blocks, each after its dominators."""
        queue = [0]
        for block in queue:
            yield block
            queue += self._below.get(block, ())


def _tree(above: dict[int, int], root: int) -> tuple[Tree, dict[int, list[int]]]:
    below: dict[int, list[int]] = {}
    for block, parent in above.items():
        below.setdefault(parent, []).append(block)
    named = {str(parent): list(map(str, blocks)) for parent, blocks in below.items()}
    return Tree(named, (str(root),)), below


def _post_dominators(graph: Graph, flow: Following, end: int) -> dict[int, int]:
    backwards: Following = [[] for _ in range(end)]
    for block, after in enumerate(flow):
        for each in after:
            backwards[each].append(block)
    backwards.append([n for n, block in enumerate(graph.blocks) if _may_end(block)])
    # A run may stay forever in blocks that reach no end, so it passes nothing for certain after.
    ending = reached(backwards)[end]
    backwards[end] += [n for n in range(end) if not ending >> n & 1]
    return dominators(backwards, end)


def _may_end(block: Block) -> bool:
    """Whether a run can end in a block, also with an error."""
    last = block.nodes[-1]
    return not successors(last) or may_miss(last)


def may_miss(last: Node) -> bool:
    """Whether a switch can fail because no case matches."""
    return last.op == "switch" and not last.text("default")
