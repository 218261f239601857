"""Writes a segment down with its pieces in another order.

Between pieces that were neighbours the white space stays; elsewhere it is the widest of what stood
beside them. What begins and ends the segment stays too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sgc.ir.graph import Block, Graph, Lit, Node, Ref, Value, make_node
from sgc.ir.types import STREAM
from sgc.passes.changing.movement.pieces import Piece
from sgc.passes.changing.movement.streams import Segment

Spans = list[tuple[int, int] | str]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A segment of a block, and the order of its pieces."""

    block: int
    segment: Segment
    pieces: tuple[Piece, ...]
    order: tuple[int, ...]


def apply(graph: Graph, rewrites: Sequence[Rewrite]) -> Graph:
    """The program with its segments rewritten; the same object if nothing moves."""
    changed = [each for each in rewrites if each.order != tuple(range(len(each.pieces)))]
    if not changed:
        return graph
    taken = {value.name for node in graph.nodes() for value in node.results}
    taken |= {param.value.name for param in graph.params}
    taken |= {value.name for block in graph.blocks for value in block.params}
    blocks = list(graph.blocks)
    for number in {each.block for each in changed}:
        inside = [each for each in changed if each.block == number]
        blocks[number] = _rewritten(blocks[number], inside, taken)
    return replace(graph, blocks=tuple(blocks))


def _rewritten(block: Block, rewrites: Sequence[Rewrite], taken: set[str]) -> Block:
    gone = {place for each in rewrites for place in each.segment.places}
    # By then all that it appends is there.
    made = {each.segment.places[-1]: _nodes(each, taken) for each in rewrites}
    nodes: list[Node] = []
    for place, node in enumerate(block.nodes):
        nodes += made.get(place, ()) if place in gone else (node,)
    return replace(block, nodes=tuple(nodes))


def spans(segment: Segment, pieces: Sequence[Piece], order: Sequence[int]) -> Spans:
    """The new text: stretches of the old one, and white space."""
    found: Spans = [(0, pieces[0].start)]
    for i, number in enumerate(order):
        if i:
            found.append(_gap(segment.text, pieces, order[i - 1], number))
        found.append((pieces[number].start, pieces[number].end))
    return [*found, (pieces[-1].end, len(segment.text))]


def _gap(text: str, pieces: Sequence[Piece], left: int, right: int) -> str:
    def after(number: int) -> str:
        if not 0 <= number < len(pieces) - 1:
            return ""
        return text[pieces[number].end : pieces[number + 1].start]

    if right == left + 1:
        return after(left)
    # Of a piece that went forward, also what stood in front of it.
    beside = [after(left), after(right - 1)] + ([after(left - 1)] if left > right else [])
    return max(beside, key=lambda gap: (gap.count("\n"), len(gap))) or "\n"


def _nodes(rewrite: Rewrite, taken: set[str]) -> list[Node]:
    segment = rewrite.segment
    bodies = list(_bodies(segment, spans(segment, rewrite.pieces, rewrite.order)))
    old = [node.results[0].name for node in segment.nodes]
    fresh = _fresh(old[-1], len(bodies) - len(old), taken)
    names = [*old[:-1][: len(bodies) - 1], *fresh, old[-1]]
    stream = segment.nodes[0].get("stream")
    nodes: list[Node] = []
    for node, name in zip(bodies, names, strict=True):
        value = Value(name, STREAM)
        nodes.append(replace(node.with_fields(stream=stream), results=(value,)))
        stream = Ref(name)
    return nodes


def _bodies(segment: Segment, text: Spans) -> Iterator[Node]:
    """Nodes in their new order; constants that meet are one, of the line where it begins."""
    held = ""
    origin: Node | None = None
    for span in text:
        if isinstance(span, str):
            held += span
            continue
        for i in range(*span):
            if i in segment.slots:
                if held:
                    yield _const(held, origin or segment.nodes[0])
                held, origin = "", None
                yield segment.node_at(i)
            else:
                held += segment.text[i]
                if origin is None:
                    origin = segment.node_at(i)
    if held:
        yield _const(held, origin or segment.nodes[0])


def _const(text: str, origin: Node) -> Node:
    value = Value("", STREAM)
    return make_node("const", (value,), origin.loc, stream=Lit(None), text=Lit(text))


def _fresh(stem: str, n: int, taken: set[str]) -> list[str]:
    names: list[str] = []
    number = 0
    while len(names) < n:
        number += 1
        name = f"{stem}.{number}"
        if name not in taken:
            taken.add(name)
            names.append(name)
    return names
