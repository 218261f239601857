"""Reads a graph from the flat tables of `sgir.proto`, and checks every index, kind and count.

Nothing in a message is trusted, and nothing that it names is opened, imported or run. The graph may
still break the verifier's rules. Only `file/sgir.py` calls this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from sgc.errors import LoadError
from sgc.ir.graph import Block, Graph, Guard, Lit, Loc, Node, Operand, Param, Receipt, Ref, Value
from sgc.ir.limits import MAX_CALLED, MAX_DEPTH, MAX_DETAILS, MAX_ENTRIES, max_chars
from sgc.ir.ops import OP_TABLE_VERSION, OPS
from sgc.ir.types import Kind, Type
from sgc.proto import sgir_pb2 as pb

UPGRADE = "made by a newer sgc: upgrade this one"
DAMAGED = "the file is damaged or was not made by sgc: compile the program again"

_KINDS = frozenset(map(str, Kind))
_MAX_SHOWN_CHARS = 60
_T = TypeVar("_T")


def read_program(program: pb.Program, source: str) -> Graph:
    """The graph in a message; LoadError says what was expected and what was found."""
    return _Reader(program, source, _Budget(max_chars(program.ByteSize()))).graph()


def _shown(name: str) -> str:
    return repr(name[:_MAX_SHOWN_CHARS])


class _Budget:
    """The characters that a file, called programs included, may still expand to."""

    def __init__(self, n_left: int) -> None:
        self.n_left = n_left


class _Reader:
    def __init__(
        self, program: pb.Program, source: str, budget: _Budget, is_called: bool = False
    ) -> None:
        self._source = source
        self._program = program
        self._budget = budget
        self._check_versions()
        self._check_counts(is_called)
        self._strings: Sequence[str] = list(program.strings)
        self._types = self._read_types()
        self._values = list(map(self._value, program.values))
        self._is_used = bytearray(len(program.operands))
        self._operands = self._read_operands()

    def graph(self) -> Graph:
        program = self._program
        params = tuple(map(self._param, program.params))
        blocks = self._blocks()
        guards = tuple(map(self._guard, program.guards))
        receipts = tuple(map(self._receipt, program.receipts))
        called = tuple(map(self._called, program.called))
        return Graph(self._string(program.name), params, blocks, guards, receipts, called)

    def _called(self, program: pb.Program) -> Graph:
        return _Reader(program, self._source, self._budget, is_called=True).graph()

    def _error(self, message: str, hint: str = DAMAGED) -> LoadError:
        return LoadError(message, where=self._source, hint=hint)

    def _check_versions(self) -> None:
        found = self._program.op_table_version
        if found != OP_TABLE_VERSION:
            hint = UPGRADE if found > OP_TABLE_VERSION else "compile the program again"
            expected = f"expected version {OP_TABLE_VERSION} of the table of ops"
            raise self._error(f"{expected}, found {found}", hint)
        size = self._program.ByteSize()
        self._program.DiscardUnknownFields()
        if self._program.ByteSize() != size:
            raise self._error("expected only known fields in the tables, found others", UPGRADE)

    def _check_counts(self, is_called: bool) -> None:
        most = 0 if is_called else MAX_CALLED
        if len(self._program.called) > most:
            found = f"found {len(self._program.called)}"
            raise self._error(f"expected at most {most} called programs, {found}")
        for descriptor, table in self._program.ListFields():
            if hasattr(table, "__len__") and len(table) > MAX_ENTRIES:
                limit = f"expected at most {MAX_ENTRIES} {descriptor.name}"
                raise self._error(f"{limit}, found {len(table)}")

    def _at(self, table: Sequence[_T], index: int, name: str) -> _T:
        if index >= len(table):
            raise self._error(f"expected an index below {len(table)} into {name}, found {index}")
        return table[index]

    def _string(self, index: int) -> str:
        text = self._at(self._strings, index, "strings")
        self._count(len(text))
        return text

    def _count(self, n_chars: int) -> None:
        """Counts characters at each use: strings are shared, so a small file may expand."""
        self._budget.n_left -= n_chars
        if self._budget.n_left < 0:
            raise self._error("expected texts of a few times its size, found more once written out")

    def _value(self, row: pb.Value) -> Value:
        type_ = self._at(self._types, row.type, "types")
        self._count(type_.n_chars)
        return Value(self._string(row.name), type_)

    def _read_types(self) -> list[Type]:
        types: list[Type] = []
        depths: list[int] = []
        for row in self._program.types:
            kind = self._string(row.kind)
            if kind not in _KINDS:
                raise self._error(f"expected a known kind of value, found {_shown(kind)}", UPGRADE)
            items = [self._at(types, index, "earlier types") for index in row.items]
            depth = 1 + max((depths[index] for index in row.items), default=0)
            if len(items) > 1 or depth > MAX_DEPTH + 1:
                raise self._error(f"expected one item type, {MAX_DEPTH} deep, found more")
            options = tuple(map(self._string, row.options))
            types.append(self._type(Kind(kind), items, options))
            depths.append(depth)
        return types

    def _type(self, kind: Kind, items: list[Type], options: tuple[str, ...]) -> Type:
        try:
            return Type(kind, items[0] if items else None, options)
        except ValueError as error:
            raise self._error(f"expected a well-formed type, found a {error}") from None

    def _read_operands(self) -> list[Operand]:
        operands: list[Operand] = []
        depths: list[int] = []
        for row in self._program.operands:
            below = list(row.list.items)
            operands.append(self._operand(row, operands))
            depths.append(1 + max((depths[index] for index in below), default=-1))
            if depths[-1] > MAX_DEPTH:
                raise self._error(f"expected lists at most {MAX_DEPTH} deep, found more")
        return operands

    def _once(self, operands: list[Operand], index: int, name: str) -> Operand:
        """An operand used for the first time: shared operands could make a small file expand."""
        operand = self._at(operands, index, name)
        if self._is_used[index]:
            raise self._error(f"expected each operand in one place, found {index} in two")
        self._is_used[index] = True
        return operand

    def _operand(self, row: pb.Operand, earlier: list[Operand]) -> Operand:
        match row.WhichOneof("kind"):
            case "value":
                name = self._at(self._values, row.value, "values").name
                self._count(len(name))
                return Ref(name)
            case "text":
                return Lit(self._string(row.text))
            case "integer":
                return Lit(row.integer)
            case "number":
                return Lit(row.number)
            case "boolean":
                return Lit(row.boolean)
            case "none":
                return Lit(None)
            case "list":
                return tuple(self._once(earlier, i, "earlier operands") for i in row.list.items)
        raise self._error("expected an operand of a known kind, found none", UPGRADE)

    def _param(self, row: pb.Param) -> Param:
        default = self._once(self._operands, row.default, "operands") if row.has_default else None
        return Param(self._at(self._values, row.value, "values"), default)

    def _blocks(self) -> tuple[Block, ...]:
        expected = sum(row.n_nodes for row in self._program.blocks)
        if expected != len(self._program.nodes):
            found = len(self._program.nodes)
            raise self._error(f"expected {expected} nodes in the blocks, found {found}")
        nodes = iter(self._program.nodes)
        blocks = []
        for row in self._program.blocks:
            params = self._values_at(row.params)
            content = tuple(map(self._node, islice(nodes, row.n_nodes)))
            blocks.append(Block(self._string(row.name), params, content))
        return tuple(blocks)

    def _values_at(self, indices: Sequence[int]) -> tuple[Value, ...]:
        return tuple(self._at(self._values, index, "values") for index in indices)

    def _node(self, row: pb.Node) -> Node:
        op = self._string(row.op)
        if op not in OPS:
            raise self._error(f"expected an op of this table, found {_shown(op)}", UPGRADE)
        known = {spec.name for spec in OPS[op].fields}
        fields = []
        for field in row.fields:
            name = self._string(field.name)
            if name not in known:
                raise self._error(f"expected a field of op {op}, found {_shown(name)}", UPGRADE)
            fields.append((name, self._once(self._operands, field.operand, "operands")))
        return Node(op, self._values_at(row.results), tuple(fields), self._loc(row))

    def _loc(self, row: pb.Node) -> Loc | None:
        if row.line == 0:
            return None
        return Loc(self._string(row.file), row.line, self._string(row.function))

    def _guard(self, row: pb.Guard) -> Guard:
        return Guard(self._string(row.kind), self._string(row.name), self._string(row.value))

    def _receipt(self, row: pb.Receipt) -> Receipt:
        name = self._string(getattr(row, "pass"))
        preserves, summary = self._string(row.preserves), self._string(row.summary)
        if len(row.details) > MAX_DETAILS:
            found = f"found {len(row.details)}"
            raise self._error(f"expected at most {MAX_DETAILS} details of a receipt, {found}")
        details = tuple(map(self._string, row.details))
        return Receipt(name, preserves, summary, row.nodes_before, row.nodes_after, details)
