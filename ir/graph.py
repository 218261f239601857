"""Programs as frozen data: graphs of blocks of nodes over SSA values.

Constructors check what is local to a node; `verify.py` checks the global rules (linear streams,
dominance, types). Source lines are not part of a node's identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sgc.ir.op_specs import Flag, OpSpec
from sgc.ir.ops import OPS
from sgc.ir.types import Type

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of the value called `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal.

    Literals are equal if they have the same type and print alike. So `1`, `1.0` and `True` are
    different literals, as are `0.0` and `-0.0`, although equal in Python; but `nan` equals `nan`.
    """

    value: Scalar

    def _key(self) -> tuple[type, object]:
        is_float = isinstance(self.value, float)
        return type(self.value), repr(self.value) if is_float else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lit) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


Operand = Ref | Lit | tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in the user's source: base name of the file, line from 1, function."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Value:
    """The definition of a value: a node's result, or a parameter of a block or of the program."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. `fields` holds the fields that are set, in the order of the op's row."""

    op: str
    results: tuple[Value, ...] = ()
    fields: tuple[tuple[str, Operand], ...] = ()
    loc: Loc | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ValueError(f"no op is called {self.op!r}")

    @property
    def spec(self) -> OpSpec:
        return OPS[self.op]

    @property
    def flags(self) -> frozenset[Flag]:
        return OPS[self.op].flags

    def get(self, name: str) -> Operand:
        """The operand of a field, or its default if it is not set."""
        for key, operand in self.fields:
            if key == name:
                return operand
        return _literal(self.spec.field(name).default)

    def text(self, name: str) -> str:
        """The value of a field that is a literal text."""
        operand = self.get(name)
        assert isinstance(operand, Lit), (self.op, name, operand)
        assert isinstance(operand.value, str), (self.op, name, operand)
        return operand.value

    def refs(self) -> Iterator[str]:
        """The names of the values that the node uses, in order, once for each use."""
        for _, operand in self.fields:
            yield from operand_refs(operand)

    def with_fields(self, **changes: Operand) -> Node:
        """A copy with some fields set; other fields keep their operands."""
        merged = dict(self.fields) | changes
        return replace(self, fields=order_fields(self.op, merged))

    @property
    def is_terminator(self) -> bool:
        return Flag.TERMINATOR in self.flags


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that run in an order that respects their data dependencies, ended by a terminator."""

    name: str
    params: tuple[Value, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Param:
    """An argument of the program; `default` is a literal or a tuple of literals."""

    value: Value
    default: Operand | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which the graph still matches its source, e.g. ("source", "tips", sha)."""

    kind: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """A record of what a pass changed in this graph. details: one line for each change."""

    pass_name: str
    preserves: str
    summary: str
    nodes_before: int
    nodes_after: int
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """A program. The first block is its entry; its arguments are visible in every block.

    called: the programs that `map` nodes run, by number; each may run earlier ones.
    """

    name: str
    params: tuple[Param, ...]
    blocks: tuple[Block, ...]
    guards: tuple[Guard, ...] = ()
    receipts: tuple[Receipt, ...] = field(default=(), compare=False)
    called: tuple[Graph, ...] = ()

    def nodes(self) -> Iterator[Node]:
        for block in self.blocks:
            yield from block.nodes

    def all_nodes(self) -> Iterator[Node]:
        """The program's own nodes, then the nodes of the programs that it calls."""
        yield from self.nodes()
        for each in self.called:
            yield from each.nodes()

    @property
    def n_nodes(self) -> int:
        """The number of nodes, including the nodes of called programs."""
        own = sum(len(block.nodes) for block in self.blocks)
        return own + sum(each.n_nodes for each in self.called)


@lru_cache(typed=True)  # has few values, but is called for each field that is read
def _literal(value: Any) -> Operand:
    return tuple(map(Lit, value)) if isinstance(value, tuple) else Lit(value)


def operand_refs(operand: Operand) -> Sequence[str]:
    """Names of the values an operand refers to, in order."""
    if isinstance(operand, Ref):
        return (operand.name,)
    if isinstance(operand, tuple):
        return [name for item in operand for name in operand_refs(item)]
    return ()


def order_fields(op: str, fields: dict[str, Operand]) -> tuple[tuple[str, Operand], ...]:
    """Fields in the order of the op's row, so that equal nodes compare equal."""
    places = OPS[op].places
    if not fields.keys() <= places.keys():
        raise ValueError(f"op {op} has no field {sorted(fields.keys() - places.keys())}")
    return tuple(sorted(fields.items(), key=lambda field: places[field[0]]))


def make_node(
    op: str, results: tuple[Value, ...] = (), loc: Loc | None = None, **fields: Operand
) -> Node:
    return Node(op, results, order_fields(op, fields), loc)
