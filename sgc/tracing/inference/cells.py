"""Cells: the types that the values of an expression or variable of code may have.

A container's items are cells too, shared by all names of the container: what is appended under one
name is read under another (B. Steensgaard, Points-to Analysis in Almost Linear Time, 1996). Cells
only grow, so inference terminates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sgc.ir import types
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.tracing.inference.members import MEMBER
from sgc.tracing.kinds.row_types import (
    OBJECT,
    RANDOM,
    DictType,
    MemberType,
    OptionalType,
    RecordType,
    RowType,
    optional,
    row_of,
)

MAX_DEPTH, MAX_PARTS = 6, 64  # of a type

_SCALARS = {Kind.INT: "int", Kind.FLOAT: "float", Kind.BOOL: "bool"}
_TYPES = {"str": types.TEXT, "int": types.INT, "float": types.FLOAT, "bool": types.BOOL}
FIXED = tuple(_TYPES.values())  # the types of values without parts
NUMBERS = frozenset({"int", "float", "bool"})
DICTS = frozenset({"dict", "defaultdict", "Counter"})


class Cell:
    """kinds: the names of scalar types. parts: for each container type, the cells of its items; the
    key of a tuple is `tuple` and its length. is_any: whether the cell may have any other type.
    """

    __slots__ = ("is_any", "kinds", "parts", "same")

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.parts: dict[str, tuple[Cell, ...]] = {}
        self.is_any = False
        self.same: Cell | None = None  # the cell with which this cell was unified

    @property
    def names(self) -> set[str]:
        return {*self.kinds, *self.parts}


RECORD = "object "  # begins the name of a class of the user's among the parts


@dataclass(frozen=True, slots=True)
class Record:
    """The cells of the attributes of a class's objects."""

    name: str
    keys: tuple[str, ...]
    form: str
    cells: tuple[Cell, ...]

    def cell(self, key: str) -> Cell | None:
        return self.cells[self.keys.index(key)] if key in self.keys else None


class Cells:
    """Makes cells, and lets values flow between them. n_changes: grows whenever a cell grows."""

    def __init__(self) -> None:
        self.n_changes = 0
        self.records: dict[str, Record] = {}

    def new(self, *kinds: str) -> Cell:
        cell = Cell()
        cell.kinds.update(kinds)
        return cell

    def any(self) -> Cell:
        cell = Cell()
        cell.is_any = True
        return cell

    def holding(self, name: str, *parts: Cell) -> Cell:
        """The cell of a container, or another object, of these items."""
        cell = Cell()
        cell.parts[name] = parts
        return cell

    def found(self, cell: Cell) -> Cell:
        while cell.same is not None:
            cell = cell.same
        return cell

    def flow(self, source: Cell, into: Cell) -> None:
        """Notes that the values of one cell may become values of another."""
        source, into = self.found(source), self.found(into)
        if source is not into:
            self._merge(source, into)

    def _merge(self, source: Cell, into: Cell) -> None:
        if source.is_any:
            self.make_any(into)
        if into.is_any:
            for cells in list(source.parts.values()):
                self._make_all_any(cells)
        if not source.kinds <= into.kinds:
            into.kinds |= source.kinds
            self.n_changes += 1
        for name, cells in list(source.parts.items()):
            self._join_part(name, cells, self.found(into))

    def _join_part(self, name: str, cells: tuple[Cell, ...], into: Cell) -> None:
        known = into.parts.get(name)
        if known is None:
            into.parts[name] = cells
            self.n_changes += 1
            return
        for one, other in zip(known, cells, strict=True):
            self._unify(one, other)

    def _unify(self, one: Cell, other: Cell) -> None:
        one, other = self.found(one), self.found(other)
        if one is other:
            return
        other.same = one
        self.n_changes += 1
        self._merge(other, one)

    def make_any(self, cell: Cell) -> None:
        cell = self.found(cell)
        if not cell.is_any:
            cell.is_any = True
            self.n_changes += 1
            self.spoil(cell)

    def spoil(self, cell: Cell) -> None:
        """Notes that unknown code may put anything into the containers of a cell."""
        for cells in list(self.found(cell).parts.values()):
            self._make_all_any(cells)

    def _make_all_any(self, cells: Sequence[Cell]) -> None:
        for each in cells:
            self.make_any(each)

    def parts_of(self, cells: Iterable[Cell]) -> set[Cell]:
        """The cells of all items of the containers in some cells, at any depth."""
        found: set[Cell] = set()
        left = list(cells)
        while left:
            cell = self.found(left.pop())
            inner = {self.found(each) for parts in cell.parts.values() for each in parts}
            left += inner - found
            found |= inner
        return found

    def items_of(self, cells: Iterable[Cell]) -> set[Cell]:
        """The cells of the items of the containers in some cells, without nested items."""
        parts = (each for cell in cells for each in self.found(cell).parts.values())
        return {self.found(item) for items in parts for item in items}

    def record(self, name: str, keys: tuple[str, ...], form: str, parts: Iterable[Cell]) -> Cell:
        """The cell of an object of a user's class: all objects of a class share the cells of their
        attributes; if they differ in their attributes, the cell may be any object."""
        cells = tuple(parts)
        known = self.records.setdefault(name, Record(name, keys, form, cells))
        if known.keys != keys:
            return self.any()
        for own, cell in zip(known.cells, cells, strict=True):
            self._unify(own, cell)
        return self.holding(f"{RECORD}{name}", *known.cells)

    def is_row(self, name: str) -> bool:
        """Whether a kind of container is a tuple, whose items have cells of their own."""
        of = self.records.get(name.removeprefix(RECORD)) if name.startswith(RECORD) else None
        return name.startswith("tuple") or (of is not None and of.form == "tuple")

    # -- from and to types ----------------------------------------------------------------------

    def of_type(self, type_: Type) -> Cell:
        if type_.kind in TEXTUAL:
            return self.new("str")
        if type_.kind in _SCALARS:
            return self.new(_SCALARS[type_.kind])
        if type_.item is not None:
            return self.holding("list", self.of_type(type_.item))
        if isinstance(type_, RowType) and type_.keys is None:
            row = [self.of_type(each) for each in type_.row]
            return self.holding(f"tuple{len(row)}", *row)
        if isinstance(type_, RecordType):
            return self.record(type_.name, type_.keys, type_.form, map(self.of_type, type_.row))
        if isinstance(type_, OptionalType):
            cell = self.of_type(type_.of)
            cell.kinds.add("None")
            return cell
        if isinstance(type_, DictType):
            held = (
                self.new() if each is None else self.of_type(each)
                for each in (type_.key, type_.value)
            )
            return self.holding("dict", *held)
        if isinstance(type_, MemberType):
            return self.new(MEMBER + type_.name)
        return self.holding("Random") if type_ == RANDOM else self.any()

    def type_of(self, cell: Cell) -> Type:
        """The type of a cell's values; OBJECT if the type is not clear, or has too many parts."""
        return self._type_of(cell, MAX_DEPTH, iter(range(MAX_PARTS)))

    def _type_of(self, cell: Cell, depth: int, left: Iterator[int]) -> Type:
        cell = self.found(cell)
        names = cell.names - {"None"}
        if cell.is_any or not depth or len(names) != 1 or next(left, None) is None:
            return OBJECT
        name = names.pop()
        parts = [self._type_of(each, depth - 1, left) for each in cell.parts.get(name, ())]
        found = _TYPES.get(name, OBJECT)
        if name == "list":
            found = types.list_of(parts[0])
        elif name.startswith("tuple") and parts and name != "tuple":
            found = row_of(parts)
        elif name.startswith(MEMBER):
            found = MemberType.of(name.removeprefix(MEMBER))
        elif name.startswith(RECORD):
            known = self.records[name.removeprefix(RECORD)]
            found = RecordType.of(known.name, known.keys, tuple(parts), known.form)
        return optional(found) if "None" in cell.kinds else found

    def dict_type_of(self, cell: Cell) -> DictType | None:
        """The type of a dict with unchangeable keys and values; None if the cell may be another
        value, or the dict may hold others."""
        cell = self.found(cell)
        if cell.is_any or cell.names != {"dict"}:
            return None
        key, value = (self.found(each) for each in cell.parts["dict"])
        is_empty = not key.names and not key.is_any
        if is_empty:
            return DictType.of(None, None)
        of_key, of_value = self.type_of(key), self.type_of(value)
        return DictType.of(of_key, of_value) if {of_key, of_value} <= {*FIXED} else None
