"""Texts, numbers, bools and lists in places where another can be put: what paths may be widened in.

Two runs that differ in nothing but such values can go on as one from a statement on: the value
becomes a parameter of the block that follows, and the program is given an abstract value in its
place.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import CellType, FrameType
from typing import Any

from sgc.core.symbols import Namer, Symbol
from sgc.ir import types
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.tracing.values.row_types import joined, joined_item, plain, row_of

Plain = str | int | float | bool
Parts = tuple[Plain | Symbol, ...]  # of a text, its pieces; of a number or bool, itself


@dataclass(frozen=True, slots=True)
class Text:
    """A text put together."""

    parts: Parts


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or the values of a dict or, with no keys, of a tuple. type: of a list's items, None
    where there are none.
    """

    items: tuple[Data, ...]
    keys: tuple[str, ...] | None = None
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """A list whose items are of a narrower type than is asked for."""

    name: str
    type: Type


Data = Lit | Symbol | Text | Items
# The value of a block's parameter: the name of another's value, or what makes it.
Given = str | Lit | Text | Items | Cast

TYPES: dict[type, Type] = {
    str: types.TEXT, int: types.INT, float: types.FLOAT, bool: types.BOOL,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value lies: a variable of a frame, an item, an attribute, also of a class, a cell."""

    holder: Any
    key: Any

    @property
    def label(self) -> str:
        """The same in every run of the program."""
        if isinstance(self.holder, FrameType):
            return f"{self.holder.f_code.co_qualname}: {self.key}"
        return f"{type(self.holder).__name__}: {self.key!r}"

    @property
    def name(self) -> str:
        """In the user's words, as far as there are any."""
        return self.key if isinstance(self.key, str) and self.key.isidentifier() else "v"

    @property
    def value(self) -> Any:
        """What lies there now."""
        if isinstance(self.holder, FrameType):
            return self.holder.f_locals[self.key]
        if isinstance(self.holder, (list, dict)):
            return self.holder[self.key]
        if isinstance(self.holder, CellType):
            return self.holder.cell_contents
        if isinstance(self.holder, type):
            return vars(self.holder)[self.key]
        return object.__getattribute__(self.holder, self.key)

    def put(self, value: Any) -> None:
        if isinstance(self.holder, FrameType):
            _put_local(self.holder, self.key, value)
        elif isinstance(self.holder, (list, dict)):
            self.holder[self.key] = value
        elif isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, type):
            type.__setattr__(self.holder, self.key, value)
        else:
            object.__setattr__(self.holder, self.key, value)


def is_iterated(items: list[Any]) -> bool:
    """Whether a loop is going over a list: it would go on over what the list was."""
    return any(type(each) in _ITERATORS for each in gc.get_referrers(items))


_ITERATORS: tuple[type, ...] = (type(iter([])), type(reversed([])))


def _put_local(frame: FrameType, name: str, value: Any) -> None:
    """Up to Python 3.12 `f_locals` is a copy, which is written back where a debugger asks."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value in a place. type: None for an empty list, which is of any; parts: of a list, the
    symbols in it; tokens, slots: where its own are in the snapshot's whole, half-open; shape: of a
    list, its tokens; data: of a list that is one of Python's; is_movable: whether every place is
    known that it lies in; is_own: whether the program may change it, if it is a list.
    """

    type: Type | None
    parts: Parts
    label: str
    tokens: tuple[int, int]
    slots: tuple[int, int]
    is_list: bool = False
    shape: tuple[object, ...] = ()
    data: Items | None = None
    is_movable: bool = True
    is_own: bool = True

    @property
    def kind(self) -> Kind:
        return Kind.LIST if self.is_list or self.type is None else self.type.kind

    @property
    def symbol(self) -> Symbol | None:
        """What it is, if it is one abstract value."""
        lone = self.parts[0] if len(self.parts) == 1 and self.data is None else None
        return lone if isinstance(lone, Symbol) else None

    def given(self, type_: Type) -> Given | None:
        """It as the value of a parameter of that type; None if it cannot be."""
        symbol = self.symbol
        if symbol is not None and symbol.type == type_:
            return symbol.name
        if self.is_list:
            if joined(self.type, type_) != type_:
                return None
            if symbol is not None:
                is_same_there = plain(symbol.type) == plain(type_)
                return symbol.name if is_same_there else Cast(symbol.name, plain(type_))
            return replace(self.data, type=type_.item) if self.data is not None else None
        if self.type != type_:
            return None
        first = self.parts[0] if self.parts else ""
        is_plain = len(self.parts) < 2 and not isinstance(first, Symbol)
        return Lit(first) if is_plain else Text(self.parts)  # type: ignore[arg-type]


def type_of(data: Data) -> Type:
    """The type of a value, as an item of a list."""
    if isinstance(data, Symbol):
        return types.TEXT if data.type.kind in TEXTUAL else data.type
    if isinstance(data, Text):
        return types.TEXT
    if isinstance(data, Lit):
        return TYPES.get(type(data.value), types.JSON)
    if data.keys is not None:
        return row_of(map(type_of, data.items), data.keys or None)
    return types.list_of(data.type or types.JSON)


def item_type(items: Iterable[Data]) -> Type | None:
    """The type of the items of a list."""
    found = [type_of(item) for item in items]
    return joined_item(found) if found else None


def bind(mine: Leaf, other: Leaf, found: dict[str, Any]) -> bool:
    """Whether a block that was traced with `mine` can be given `other`; adds how to `found`."""
    symbol = mine.symbol
    if symbol is not None and symbol.type == mine.type:
        given = other.given(symbol.type)
        return given is not None and is_same(found.setdefault(symbol.name, given), given)
    return is_alike(mine, other) and all(
        found.setdefault(ours.name, theirs.name) == theirs.name
        for ours, theirs in zip(mine.parts, other.parts, strict=True)
        if isinstance(ours, Symbol) and isinstance(theirs, Symbol)
    )


def is_alike(mine: Leaf, other: Leaf) -> bool:
    """Whether two are the same but for the symbols in them."""
    if mine.shape != other.shape or len(mine.parts) != len(other.parts):
        return False
    return all(
        theirs.type == ours.type
        if isinstance(ours, Symbol) and isinstance(theirs, Symbol)
        else is_same(ours, theirs)
        for ours, theirs in zip(mine.parts, other.parts, strict=True)
    )


def is_same(one: object, other: object) -> bool:
    """Whether two plain values are the very same: 0.0 is not -0.0, and 1 is not True."""
    return type(one) is type(other) and one == other and repr(one) == repr(other)


def symbols_of(leaves: Iterable[Leaf]) -> set[str]:
    """The names of the symbols in them."""
    return {part.name for leaf in leaves for part in leaf.parts if isinstance(part, Symbol)}


def operand_of(
    given: str | Data | Given, namer: Namer, loc: Loc | None, nodes: list[Node]
) -> Operand:
    """The operand of what a parameter is given; adds the nodes that make it."""
    if isinstance(given, str):
        return Ref(given)
    if isinstance(given, Symbol):
        return Ref(given.name)
    if isinstance(given, Lit):
        return given
    fields: dict[str, Operand]
    if isinstance(given, Text):
        op, type_ = "concat", types.TEXT
        fields = {"parts": tuple(map(_part, given.parts))}
    elif isinstance(given, Cast):
        op, type_ = "compute", given.type
        fields = {"fn": Lit("plus"), "args": (Ref(given.name), ())}
    else:
        op = "list" if given.keys is None else "record"
        type_ = types.JSON
        if given.keys is None:
            type_ = types.list_of(plain(given.type or types.JSON))
        fields = {"items": tuple(operand_of(item, namer, loc, nodes) for item in given.items)}
        if given.keys is not None:
            fields["keys"] = tuple(map(Lit, given.keys))
    value = Value(namer.fresh("v"), type_)
    nodes.append(make_node(op, (value,), loc, **fields))
    return Ref(value.name)


def _part(part: Plain | Symbol) -> Operand:
    return Ref(part.name) if isinstance(part, Symbol) else Lit(part)
