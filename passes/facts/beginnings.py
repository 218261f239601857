"""The known beginnings of a program's prompts, and what their first requests wait for.

A *beginning* is a sequence of constants, roles and arguments: from a stream's first state on, or
after a state in the middle of a stream. Mapped programs have beginnings too, if their first request
waits for nothing. This module changes nothing; `insert_prefetch.py` calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sgc.ir.analysis.dependencies import consumed, jump_args, jump_target
from sgc.ir.graph import Block, Graph, Lit, Loc, Node, Operand, Ref, Value
from sgc.ir.limits import MAX_NESTING
from sgc.ir.op_specs import Flag
from sgc.passes.facts.appended import is_one_of
from sgc.passes.facts.calls import arguments_of, program_of
from sgc.passes.facts.slow_dependencies import NEVER, Waits

Piece = tuple[str, Operand]  # as in the op `prefetch`: the kind, and the text or the role's name

# For each op that appends known text: the kind of piece, and the field that holds it.
_PIECES = {
    "const": ("const", "text"), "append": ("value", "value"),
    "role_begin": ("role_begin", "role"), "role_end": ("role_end", "role"),
}  # fmt: skip
_MARKS = frozenset({Flag.HINT, Flag.APPENDS})


@dataclass(frozen=True, slots=True)
class Beginning:
    """stream: the state that the beginning follows; None if it begins a prompt. waits: what the
    first request with it waits for (`Waits`); block: the number of its first piece's block.
    """

    stream: str | None
    pieces: tuple[Piece, ...]
    waits: int
    block: int
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class _Chain:
    stream: str | None
    block: int
    loc: Loc | None = None
    pieces: tuple[Piece, ...] = ()

    def with_piece(self, piece: Piece | None, node: Node) -> _Chain:
        pieces = self.pieces if piece is None else _joined(self.pieces, piece)
        return _Chain(self.stream, self.block, self.loc or node.loc, pieces)


def _joined(pieces: tuple[Piece, ...], piece: Piece) -> tuple[Piece, ...]:
    """The pieces with one more; adjacent constants become one."""
    if pieces and pieces[-1][0] == piece[0] == "const":
        one, two = pieces[-1][1], piece[1]
        assert isinstance(one, Lit)
        assert isinstance(two, Lit)
        return (*pieces[:-1], ("const", Lit(str(one.value) + str(two.value))))
    return (*pieces, piece)


def beginnings(graph: Graph, waits: Waits) -> list[Beginning]:
    """The beginnings of the program's requests, in the program's order."""
    return _Finder(graph, waits, graph.called).all()


@dataclass(slots=True)
class _Finder:
    graph: Graph
    waits: Waits
    called: Sequence[Graph]
    depth: int = 0
    _chains: dict[str, _Chain] = field(default_factory=dict)
    _users: dict[str, list[tuple[Block, Node]]] = field(default_factory=dict)
    _params: dict[str, tuple[Value, ...]] = field(default_factory=dict)

    def all(self) -> list[Beginning]:
        self._params = {block.name: block.params for block in self.graph.blocks}
        arguments = {param.value.name for param in self.graph.params}
        for number, block in enumerate(self.graph.blocks):
            for node in block.nodes:
                for name in consumed(node):
                    self._users.setdefault(name, []).append((block, node))
                self._take(node, number, arguments)
        found: list[Beginning] = []
        first = self._first_requests()
        for name, chain in self._chains.items():
            waits = NEVER  # nodes that append more known text do not count: they make it longer
            for block, node in self._users.get(name, ()):
                if not (node.results and node.results[0].name in self._chains):
                    waits &= self._asked_by(name, block, node, first)
            if chain.pieces and waits != NEVER:
                found.append(Beginning(chain.stream, chain.pieces, waits, chain.block, chain.loc))
        for number, block in enumerate(self.graph.blocks):
            for node in block.nodes:
                if Flag.CALLS in node.flags and self.depth < MAX_NESTING:
                    found += self._mapped(node, block, number)
        return found

    def _take(self, node: Node, block: int, arguments: set[str]) -> None:
        """Records what a node adds to a beginning, if it is known at the start of a run."""
        if Flag.EMPTY in node.flags:
            self._chains[node.results[0].name] = _Chain(None, block)
            return
        piece = _piece(node)
        is_known = piece is not None and _is_known(piece[1], arguments)
        if is_known or node.flags >= _MARKS:  # a mark adds nothing
            (state,) = consumed(node)
            before = self._chains.get(state) or _Chain(state, block)
            self._chains[node.results[0].name] = before.with_piece(piece, node)

    def _first_requests(self) -> dict[str, int]:
        """For each state, what the first request from that state or a later one waits for, on every
        path; NEVER if there is no request. Computed backwards until nothing changes, because a
        loop's first states follow its last states."""
        found = dict.fromkeys(self._users, NEVER)
        is_new = True
        while is_new:
            is_new = False
            for state in reversed(self._users):
                waits = NEVER
                for block, node in self._users[state]:
                    waits &= self._asked_by(state, block, node, found)
                is_new = is_new or waits != found[state]
                found[state] = waits
        return found

    def _asked_by(self, state: str, block: Block, node: Node, found: Mapping[str, int]) -> int:
        """What the first request from a state waits for, by way of one node that takes it."""
        if Flag.ASKS in node.flags or commits(node):
            return self.waits.of_node(node, block)
        waits = NEVER
        for name in self._following(state, node):
            waits &= found.get(name, NEVER)
        return waits

    def _following(self, state: str, node: Node) -> Iterator[str]:
        """The states that a node makes from the state that it takes."""
        target = jump_target(node)
        if target is not None:
            for param, arg in zip(self._params[target], jump_args(node), strict=True):
                if arg == Ref(state):
                    yield param.name
        elif Flag.APPENDS in node.flags:
            yield from (value.name for value in node.results if value.type.is_stream)

    def _mapped(self, node: Node, block: Block, number: int) -> Iterator[Beginning]:
        """The beginnings of a map's calls, as far as all calls share them."""
        callee = self.called[program_of(node)]
        arguments = {param.value.name for param in self.graph.params}
        known = {k: a for k, a in arguments_of(node).items() if _is_known(a, arguments)}
        below = _Finder(callee, Waits(callee), self.called, self.depth + 1)
        waits = self.waits.of_node(node, block)
        for one in below.all():
            if one.stream is None and one.waits == 0:
                pieces = tuple(_known_pieces(one.pieces, known))
                yield Beginning(None, pieces, waits, number, one.loc)


def _known_pieces(pieces: tuple[Piece, ...], known: Mapping[str, Operand]) -> Iterator[Piece]:
    """The pieces in terms of the caller's values, up to the first piece not known there."""
    for kind, piece in pieces:
        if isinstance(piece, Ref) and piece.name not in known:
            return
        yield kind, known[piece.name] if isinstance(piece, Ref) else piece


def _is_known(operand: Operand, arguments: set[str]) -> bool:
    """Whether an operand is known at the start of a run."""
    return isinstance(operand, Lit) or is_one_of(operand, arguments)


def _piece(node: Node) -> Piece | None:
    kind, name = _PIECES.get(node.op, ("", ""))
    return (kind, node.get(name)) if kind else None


def commits(node: Node) -> bool:
    """Whether the executor commits the trunk of a fork."""
    return node.op in ("fork", "open_fork") and node.get("n") != Lit(1)
