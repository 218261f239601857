"""The text of a stream as passes see it: segments between what no text may cross.

A segment is a chain of `const` and `append` nodes of one block whose states nothing else reads.
Changes nothing. `pieces.py` cuts segments up; `rebuild.py` writes them down in another order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from sgc.ir.analysis.dependencies import Tree, consumed, prompt_tree
from sgc.ir.graph import Block, Graph, Loc, Node, Ref

# Stands for an appended value in a segment's text. A constant may hold the character itself:
# `Segment.slots` says where values are.
SLOT = "\ufffc"

_APPENDS = frozenset({"const", "append"})
_GENERATES = frozenset({"gen", "gen_n", "select", "share"})
# What they append is the same in every run, or nothing at all.
_CONSTANT = frozenset({"const", "role_begin", "role_end", "cache"})


@dataclass(frozen=True, slots=True)
class Barrier:
    """Something that no text crosses. kind: generation, role or state."""

    kind: str
    text: str
    loc: Loc | None


@dataclass(frozen=True)
class Segment:
    """nodes: places in the block; text: constants, and SLOT where a value is appended.

    starts: where each node's text begins; role: whose turn it is in, "" outside of one;
    is_shared: all that stands before it in its prompt is constant; is_read: the program reads
    its text back; is_prompt: a generation follows directly.
    """

    nodes: tuple[Node, ...]
    places: tuple[int, ...]
    text: str
    starts: tuple[int, ...]
    role: str = ""
    is_shared: bool = False
    is_read: bool = False
    is_prompt: bool = False

    @cached_property
    def slots(self) -> dict[int, str]:
        """Where a value is appended, and its name."""
        return {
            start: _value_name(node)
            for node, start in zip(self.nodes, self.starts, strict=True)
            if node.op == "append"
        }

    def node_at(self, position: int) -> Node:
        """The node that a character came from."""
        # Of an empty constant and its neighbour, which begin at one place, the last has the text.
        return self.nodes[bisect_right(self.starts, position) - 1]

    def shown(self, start: int, end: int) -> str:
        """The text between two places, values as `{name}`."""
        return "".join(
            f"{{{self.slots[i]}}}" if i in self.slots else self.text[i] for i in range(start, end)
        )


def _value_name(node: Node) -> str:
    value = node.get("value")
    return value.name if isinstance(value, Ref) else "text"


@dataclass(frozen=True, slots=True)
class Passage:
    """A stream from where it begins, in one block: segments, and barriers around them."""

    block: int
    parts: tuple[Segment | Barrier, ...]

    @property
    def segments(self) -> Iterator[tuple[int, Segment]]:
        """Those with both constants and values, by their number among the parts."""
        for number, part in enumerate(self.parts):
            if isinstance(part, Segment):
                yield number, part


def passages(graph: Graph) -> Iterator[Passage]:
    """The streams of a program, in order."""
    uses = Counter(name for node in graph.nodes() for name in node.refs())
    reader = _Reader(graph, uses)
    for number, block in enumerate(graph.blocks):
        yield from reader.of_block(number, block)


class _Reader:
    """Walks the chains of states, block by block."""

    def __init__(self, graph: Graph, uses: Counter[str]) -> None:
        self.uses = uses
        self.constant = _constant_states(graph)
        self.tree = prompt_tree(graph)
        self.read = list(_read_spans(graph))

    def of_block(self, number: int, block: Block) -> Iterator[Passage]:
        next_place = {name: i for i, node in enumerate(block.nodes) for name in consumed(node)}
        walked: set[int] = set()
        for place, node in enumerate(block.nodes):
            if place in walked or not _is_link(node):
                continue
            chain = [place]
            while (after := self._after(block, chain[-1], next_place)) is not None:
                chain.append(after)
            walked.update(chain)
            yield Passage(number, tuple(self._parts(block, chain)))

    def _after(self, block: Block, place: int, next_place: dict[str, int]) -> int | None:
        state = block.nodes[place].results[0].name
        after = next_place.get(state)
        return after if after is not None and _is_link(block.nodes[after]) else None

    def _parts(self, block: Block, chain: list[int]) -> Iterator[Segment | Barrier]:
        held: list[int] = []
        role = ""
        for place, after in zip(chain, [*chain[1:], None], strict=True):
            node = block.nodes[place]
            follower = None if after is None else block.nodes[after]
            if node.op in _APPENDS:
                held.append(place)
                state = node.results[0].name
                is_observed = self.uses[state] > 1
                if is_observed or follower is None or follower.op not in _APPENDS:
                    yield self._segment(block, held, role, follower)
                    held = []
                    if is_observed and follower is not None:
                        yield Barrier("state", "a state that the program reads", node.loc)
                continue
            role = {"role_begin": node.text("role")}.get(node.op, "") if _is_role(node) else role
            yield _barrier(node)

    def _segment(
        self, block: Block, places: list[int], role: str, follower: Node | None
    ) -> Segment:
        nodes = tuple(block.nodes[place] for place in places)
        texts = [node.text("text") if node.op == "const" else SLOT for node in nodes]
        starts = tuple(accumulate(map(len, texts[:-1]), initial=0))
        first, last = consumed(nodes[0])[0], nodes[-1].results[0].name
        return Segment(
            nodes,
            tuple(places),
            "".join(texts),
            starts,
            role,
            is_shared=first in self.constant,
            is_read=any(_covers(self.tree, span, first, last) for span in self.read),
            is_prompt=follower is not None and follower.op in _GENERATES,
        )


def _is_link(node: Node) -> bool:
    """Whether it takes one state and gives the next."""
    return node.op in _APPENDS | _GENERATES or _is_role(node) or node.op == "cache"


def _is_role(node: Node) -> bool:
    return node.op in ("role_begin", "role_end")


def _barrier(node: Node) -> Barrier:
    if _is_role(node):
        return Barrier("role", f"{node.op} {node.text('role')}", node.loc)
    if node.op in _GENERATES:
        return Barrier("generation", f"{node.op} {node.text('name')}".strip(), node.loc)
    return Barrier("state", node.op, node.loc)


def _constant_states(graph: Graph) -> set[str]:
    """States whose prompt is the same in every run."""
    found: set[str] = set()
    for node in graph.nodes():
        parents = consumed(node)
        follows = bool(parents) and parents[0] in found and node.op in _CONSTANT | {"fork"}
        if node.op == "stream" or follows:
            found.update(value.name for value in node.results if value.type.is_stream)
    return found


Span = tuple[str | None, str]


def _read_spans(graph: Graph) -> Iterator[Span]:
    """Pairs of states between which a text becomes a value; None is the beginning."""
    for node in graph.nodes():
        if node.op == "text_of":
            yield None, next(node.refs())
        elif node.op in ("span", "append_span", "separate_reasoning"):
            states = [
                operand.name
                for name in ("start", "end" if node.op != "separate_reasoning" else "stream")
                if isinstance(operand := node.get(name), Ref)
            ]
            yield states[0], states[-1]


def _covers(tree: Tree, span: Span, first: str, last: str) -> bool:
    """Whether a span takes in what lies between two neighbouring reads."""
    start, end = span
    begins = start is None or tree.is_at_or_above(start, first)
    return begins and tree.is_at_or_above(last, end)
