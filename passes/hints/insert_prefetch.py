"""Inserts prefetches: long beginnings of prompts are computed before the first request needs them.

A `prefetch` is a hint to engines with a prefix cache, which follow the hint when nothing else
waits. It helps if the first request with the text waits for something slow: a generation, a tool, a
map, or a test of their results. In each program:

* the constants, roles and arguments that begin a stream are prefetched at the start of the program,
  also for streams of called functions, in either arm of a branch, in loops, and of mapped programs;
* text appended in the middle of a stream is prefetched as soon as the state before it is known, if
  its request waits for something else: a tool, or the test that decides which arm appends.

A text is not prefetched if another prefetch, or a request made at once, also begins with it, or if
the text adds too few characters to theirs. If there are too many prefetches, the longest are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sgc.ir.analysis.dependencies import successors
from sgc.ir.graph import Block, Graph, Lit, Loc, Node, Operand, Ref, order_fields
from sgc.ir.text.literals import value_ref
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.appended import constant_text
from sgc.passes.facts.beginnings import Beginning, Piece, beginnings
from sgc.passes.facts.slow_dependencies import Waits
from sgc.passes.rewriting import with_blocks, with_nodes

MIN_CHARS = 1000  # some 256 tokens; shorter texts are computed quickly
MAX_PREFETCHES = 8  # in a program
MAX_NODES = 20_000  # larger programs get no prefetches
_TEXTS = ("const", "value")  # the kinds of pieces that are not roles


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A prefetch and its position: the block, and the node before which it is inserted."""

    stream: str | None
    pieces: tuple[Piece, ...]
    block: int = 0
    index: int = 0
    loc: Loc | None = None

    def node(self) -> Node:
        fields: dict[str, Operand] = {
            "kinds": tuple(Lit(kind) for kind, _ in self.pieces),
            "pieces": tuple(piece for _, piece in self.pieces),
        }
        if self.stream is not None:
            fields["stream"] = Ref(self.stream)
        return Node("prefetch", (), order_fields("prefetch", fields), self.loc)


def insert_prefetch(graph: Graph) -> Graph:
    n_chars = sum(len(constant_text(node) or "") for node in graph.all_nodes())
    if graph.n_nodes > MAX_NODES or n_chars < MIN_CHARS:
        return graph
    waits = Waits(graph)
    found = beginnings(graph, waits)
    known = [_of(node) for node in graph.nodes() if node.op == "prefetch"]
    n_free = MAX_PREFETCHES - len(known)
    known += [_Wanted(one.stream, one.pieces) for one in found if one.waits == 0]
    candidates = [one for each in found if (one := _placed(graph, waits, each)) is not None]
    chosen: list[_Wanted] = []
    for one in sorted(candidates, key=lambda one: -_n_chars(one.pieces)):
        if len(chosen) < n_free and _n_new(one, [*known, *chosen]) >= MIN_CHARS:
            chosen.append(one)
    chosen.sort(key=candidates.index)  # in the order of the program's requests
    return _with(graph, chosen) if chosen else graph


def _placed(graph: Graph, waits: Waits, one: Beginning) -> _Wanted | None:
    """Where to prefetch a beginning; None if it would not help."""
    if _n_chars(one.pieces) < MIN_CHARS:
        return None
    if one.stream is None:
        return _Wanted(None, one.pieces, loc=one.loc) if one.waits else None
    number, index = _place_after(graph, one.stream, one.block)
    there = waits.of_value(one.stream) | waits.of_block(graph.blocks[number])
    if not one.waits & ~there:
        return None
    return _Wanted(one.stream, one.pieces, number, index, one.loc)


def _place_after(graph: Graph, name: str, number: int) -> tuple[int, int]:
    """The first position after a value's definition, on the only path to a block that uses it."""
    into: dict[str, list[int]] = {}
    for n, block in enumerate(graph.blocks):
        for target in successors(block.nodes[-1]):
            into.setdefault(target, []).append(n)
    while True:
        block = graph.blocks[number]
        for index, node in enumerate(block.nodes):
            if any(value.name == name for value in node.results):
                return number, index + 1
        before = into.get(block.name, [])
        if number == 0 or len(before) != 1 or any(p.name == name for p in block.params):
            return number, 0
        number = before[0]


def _with(graph: Graph, chosen: Sequence[_Wanted]) -> Graph:
    def nodes(number: int, block: Block) -> Iterator[Node]:
        for index, node in enumerate(block.nodes):
            yield from (one.node() for one in chosen if (one.block, one.index) == (number, index))
            yield node

    return with_blocks(graph, (with_nodes(b, nodes(n, b)) for n, b in enumerate(graph.blocks)))


def _of(node: Node) -> _Wanted:
    """An existing prefetch, with what it computes."""
    kinds, pieces, stream = node.get("kinds"), node.get("pieces"), node.get("stream")
    assert isinstance(kinds, tuple)
    assert isinstance(pieces, tuple)
    both = zip(kinds, pieces, strict=True)
    known = tuple((str(kind.value), piece) for kind, piece in both if isinstance(kind, Lit))
    return _Wanted(stream.name if isinstance(stream, Ref) else None, known)


def _n_chars(pieces: Sequence[Piece]) -> int:
    """The characters of constant text; the length of arguments is unknown."""
    return sum(len(_text(piece)) for kind, piece in pieces if kind in _TEXTS)


def _text(piece: Operand) -> str:
    return piece.value if isinstance(piece, Lit) and isinstance(piece.value, str) else ""


def _n_new(one: _Wanted, others: Sequence[_Wanted]) -> int:
    """The characters beyond the longest prefix shared with the others."""
    common = (_n_common(one.pieces, each.pieces) for each in others if each.stream == one.stream)
    return _n_chars(one.pieces) - max(common, default=0)


def _n_common(one: Sequence[Piece], other: Sequence[Piece]) -> int:
    n_chars = 0
    for (kind, piece), (other_kind, other_piece) in zip(one, other, strict=False):
        if (kind, piece) == (other_kind, other_piece):
            n_chars += _n_chars([(kind, piece)])
            continue
        if kind == other_kind == "const":
            n_chars += _n_alike(_text(piece), _text(other_piece))
        break
    return n_chars


def _n_alike(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def explain(before: Graph, after: Graph) -> tuple[str, ...]:
    """Lines on each new prefetch: its source line, its characters, and where it starts."""
    old = {id(node) for node in before.nodes()}
    lines = []
    for node in after.nodes():
        if node.op == "prefetch" and id(node) not in old:
            one = _of(node)
            when = "the start" if one.stream is None else value_ref(one.stream)
            where = node.loc or "a line unknown"
            lines.append(f"{where}: {_n_chars(one.pieces)} characters, from {when} on")
    return tuple(lines)


PASS = Pass(
    "insert_prefetch",
    Preserves.REQUESTS,
    insert_prefetch,
    "long texts that prompts begin with are computed before they are asked with",
    explain,
)
