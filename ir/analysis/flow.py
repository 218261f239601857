"""The control flow of a graph by block numbers, which every compile needs.

networkx also computes dominators, by the same algorithm, but in most compiles, loading it would
take longer than all passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sgc.ir.analysis.dependencies import successors
from sgc.ir.graph import Block, Graph

Following = list[list[int]]  # for each block, its successors


def following(graph: Graph) -> Following:
    """The successors of each block, each once, in the order of the block's terminator."""
    return following_of(graph.blocks)


def following_of(blocks: Sequence[Block]) -> Following:
    """`following`, for blocks that are not yet a graph."""
    numbers = {block.name: number for number, block in enumerate(blocks)}
    ends = (successors(block.nodes[-1]) if block.nodes else () for block in blocks)
    return [[numbers[name] for name in names if name in numbers] for names in ends]


def dominators(flow: Following, root: int = 0) -> dict[int, int]:
    """The immediate dominator of each block that the root reaches, except the root.

    Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2001).
    """
    order = _postorder(flow, [root])
    rank = {block: number for number, block in enumerate(order)}
    before = _before(flow, order)
    above = {root: root}

    def meet(one: int, other: int) -> int:
        while one != other:
            while rank[one] < rank[other]:
                one = above[one]
            while rank[other] < rank[one]:
                other = above[other]
        return one

    is_changed = True
    while is_changed:
        is_changed = False
        for block in reversed(order[:-1]):  # the last block is the root
            known = [each for each in before[block] if each in above]
            found = known[0]
            for each in known[1:]:
                found = meet(found, each)
            if above.get(block) != found:
                above[block], is_changed = found, True
    return {block: each for block, each in above.items() if block != root}


def reached(flow: Following) -> list[int]:
    """The blocks that can run after each block, as bits; the block itself only if in a loop."""
    after = [0] * len(flow)
    for part in reversed(parts(flow)):
        bits = sum(1 << block for block in part) if is_loop(part, flow) else 0
        for block in part:
            for each in flow[block]:
                bits |= after[each] | 1 << each
        for block in part:
            after[block] = bits
    return after


def is_loop(part: list[int], flow: Following) -> bool:
    """Whether a run may come back to the blocks of a component."""
    return len(part) > 1 or part[0] in flow[part[0]]


def parts(flow: Following) -> list[list[int]]:
    """The strongly connected components, each before the components that it leads to (Kosaraju)."""
    order = _postorder(flow, range(len(flow)))
    before = _before(flow, order)
    is_seen = bytearray(len(flow))
    found = []
    for first in reversed(order):
        if is_seen[first]:
            continue
        is_seen[first] = True
        part = [first]
        for block in part:  # `part` grows meanwhile
            for each in before[block]:
                if not is_seen[each]:
                    is_seen[each] = True
                    part.append(each)
        found.append(part)
    return found


def _before(flow: Following, blocks: Iterable[int]) -> dict[int, list[int]]:
    """The predecessors of each of these blocks among them."""
    found: dict[int, list[int]] = {block: [] for block in blocks}
    for block in found:
        for each in flow[block]:
            found[each].append(block)
    return found


def _postorder(flow: Following, roots: Iterable[int]) -> list[int]:
    """The blocks reachable from the roots, roots included, in postorder."""
    found: list[int] = []
    is_seen = bytearray(len(flow))
    for root in roots:
        stack = [(root, False)]
        while stack:
            block, is_left = stack.pop()
            if is_left:
                found.append(block)
            elif not is_seen[block]:
                is_seen[block] = True
                stack.append((block, True))
                stack += [(each, False) for each in reversed(flow[block])]
    return found
