"""Leaves: texts, numbers, bools and lists in places where another value can be put.

Paths that differ only in leaves can merge by widening: each leaf that differs becomes a parameter
of the next block, and the program gets an abstract value in its place.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from types import CellType, FrameType
from typing import Any

from sgc.core.symbols import Namer, Symbol
from sgc.ir import types
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import StateType, joined, joined_item, plain, row_of

Plain = str | int | float | bool | None
Parts = tuple[Plain | Symbol, ...]  # the pieces of a text; a number or bool itself


@dataclass(frozen=True, slots=True)
class Text:
    """A text made of several parts."""

    parts: Parts


@dataclass(frozen=True, slots=True)
class Items:
    """A list, tuple, dict, object or ended stream, by its items.

    keys: None for a list, empty for a tuple. type: a list's item type, None if the list is empty;
    for an ended stream, or a value that `code` makes of the items, the value's own type.
    """

    items: tuple[Data, ...]
    keys: tuple[str, ...] | None = None
    type: Type | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    """A value converted to a wider type: a list to one of its item type, others to JSON."""

    of: str | Lit | Text
    type: Type


Data = Lit | Symbol | Text | Items
# The argument for a block's parameter: a value's name, or what makes the value.
Given = str | Lit | Text | Items | Cast

TYPES: dict[type, Type] = {
    str: types.TEXT, int: types.INT, float: types.FLOAT, bool: types.BOOL,
}  # fmt: skip


_INDEXED = (list, dict, deque)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value: a frame's variable, an item, a cell, or an attribute."""

    holder: Any
    key: Any

    @property
    def label(self) -> str:
        """A label that is the same in every run of the program."""
        if isinstance(self.holder, FrameType):
            return f"{self.holder.f_code.co_qualname}: {self.key}"
        return f"{type(self.holder).__name__}: {self.key!r}"

    @property
    def name(self) -> str:
        """The user's name for the place, or "v"."""
        return self.key if isinstance(self.key, str) and self.key.isidentifier() else "v"

    @property
    def value(self) -> Any:
        """The value that is there now."""
        if isinstance(self.holder, FrameType):
            return self.holder.f_locals[self.key]
        if isinstance(self.holder, _INDEXED):
            return self.holder[self.key]
        if isinstance(self.holder, CellType):
            return self.holder.cell_contents
        if isinstance(self.holder, type):
            return vars(self.holder)[self.key]
        return object.__getattribute__(self.holder, self.key)

    def put(self, value: Any) -> None:
        if isinstance(self.holder, FrameType):
            _put_local(self.holder, self.key, value)
        elif isinstance(self.holder, _INDEXED):
            self.holder[self.key] = value
        elif isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, type):
            type.__setattr__(self.holder, self.key, value)
        else:
            object.__setattr__(self.holder, self.key, value)


def n_collections() -> int:
    """How often the garbage collector has run; objects made since its last run are young."""
    return sum(each["collections"] for each in gc.get_stats())


def begin_young() -> None:
    """Makes all objects old, so that a run searches only the objects that it makes."""
    if gc.isenabled():
        gc.collect(0)


def are_iterated(lists: Sequence[list[Any]], n_before: int) -> list[bool]:
    """For each list, whether a loop is iterating it; such a loop would not see a replacement.

    n_before: `n_collections()` when the lists were made, or before. All lists share one search,
    because it goes through all objects, or through all young objects.
    """
    if not lists:
        return []
    is_young = n_collections() == n_before
    found = gc.get_objects(generation=0) if is_young else gc.get_referrers(*lists)
    # There are many thousand objects, so no step of the search runs Python code.
    iterators = compress(found, map(_ITERATORS.__contains__, map(type, found)))
    walked = set(map(id, gc.get_referents(*iterators)))
    return [id(items) in walked for items in lists]


_ITERATORS: frozenset[type] = frozenset({type(iter([])), type(reversed([]))})


def _put_local(frame: FrameType, name: str, value: Any) -> None:
    """Sets a frame's variable. Up to Python 3.12 `f_locals` is a copy that must be written back."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value in a place. type: None for an empty list, which fits any list type; parts: for a
    list, the symbols in it; tokens, slots: the leaf's half-open ranges in the snapshot's whole;
    shape: a list's tokens; data: the items of a Python list; is_movable: whether all places of the
    value are known; is_own: for a list, whether the program may change it; is_shared: for a list,
    whether changeable objects in it are also reached from elsewhere.
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
    is_shared: bool = False

    @property
    def symbol(self) -> Symbol | None:
        """The leaf's symbol, if it is one abstract value."""
        lone = self.parts[0] if len(self.parts) == 1 and self.data is None else None
        return lone if isinstance(lone, Symbol) else None

    def given(self, type_: Type) -> Given | None:
        """The leaf as the argument for a parameter of this type; None if it does not fit."""
        symbol = self.symbol
        if symbol is not None and symbol.type == type_:
            return symbol.name
        if joined(self.type, type_) != type_:
            return None
        if symbol is not None:
            is_same_there = plain(symbol.type) == plain(type_)
            is_same_there = is_same_there or type_ == types.LIVE  # it is unchangeable
            return symbol.name if is_same_there else Cast(symbol.name, plain(type_))
        if self.is_list:
            return replace(self.data, type=type_.item) if self.data is not None else None
        first = self.parts[0] if self.parts else ""
        is_plain = len(self.parts) < 2 and not isinstance(first, Symbol)
        given = Lit(first) if is_plain else Text(self.parts)  # type: ignore[arg-type]
        is_there = first is None or type_ in (self.type, types.LIVE)
        return given if is_there else Cast(given, plain(type_))


def type_of(data: Data) -> Type:
    """The type of a value, as an item of a list."""
    if isinstance(data, Symbol):
        return types.TEXT if data.type.kind in TEXTUAL else data.type
    if isinstance(data, Text):
        return types.TEXT
    if isinstance(data, Lit):
        return TYPES.get(type(data.value), types.JSON)
    if data.code or isinstance(data.type, StateType):
        assert data.type is not None
        return data.type
    if data.keys is not None:
        return row_of(map(type_of, data.items), data.keys or None)
    return types.list_of(data.type or types.JSON)


def item_type(items: Iterable[Data]) -> Type | None:
    """The type of a list's items; None if there are none."""
    found = [type_of(item) for item in items]
    return joined_item(found) if found else None


def bind(mine: Leaf, other: Leaf, found: dict[str, Any]) -> bool:
    """Whether a block traced with `mine` can take `other`; adds the arguments to `found`."""
    symbol = mine.symbol
    if symbol is not None and symbol.type == mine.type:
        if mine.is_own and not other.is_own:
            return False
        given = other.given(symbol.type)
        return given is not None and is_same(found.setdefault(symbol.name, given), given)
    return is_alike(mine, other) and all(
        found.setdefault(ours.name, theirs.name) == theirs.name
        for ours, theirs in zip(mine.parts, other.parts, strict=True)
        if isinstance(ours, Symbol) and isinstance(theirs, Symbol)
    )


def is_alike(mine: Leaf, other: Leaf) -> bool:
    """Whether two leaves are the same except for the symbols in them."""
    if mine.shape != other.shape or len(mine.parts) != len(other.parts):
        return False
    return all(
        theirs.type == ours.type
        if isinstance(ours, Symbol) and isinstance(theirs, Symbol)
        else is_same(ours, theirs)
        for ours, theirs in zip(mine.parts, other.parts, strict=True)
    )


def is_same(one: object, other: object) -> bool:
    """Whether two plain values are identical: 0.0 is not -0.0, and 1 is not True."""
    return type(one) is type(other) and one == other and repr(one) == repr(other)


def symbols_of(leaves: Iterable[Leaf]) -> set[str]:
    """The names of the symbols in some leaves."""
    return {part.name for leaf in leaves for part in leaf.parts if isinstance(part, Symbol)}


def named_in(given: Given | Data | None) -> Iterator[str]:
    """The names of the values that an argument is made of."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Symbol):
        yield given.name
    elif isinstance(given, Text):
        yield from (part.name for part in given.parts if isinstance(part, Symbol))
    elif isinstance(given, Items):
        yield from (name for item in given.items for name in named_in(item))
    elif isinstance(given, Cast):
        yield from named_in(given.of)


def operand_of(
    given: str | Data | Given, namer: Namer, loc: Loc | None, nodes: list[Node]
) -> Operand:
    """The operand for a parameter's argument; adds the nodes that make it to `nodes`."""
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
        of = operand_of(given.of, namer, loc, nodes)
        is_list = given.type.item is not None
        fields = {"fn": Lit("plus"), "args": (of, ())}
        if not is_list:
            fields = {"fn": Lit("item"), "args": ((of,), Lit(0))}
    elif given.code:
        op, type_ = "evaluate", types.JSON
        args = tuple(operand_of(item, namer, loc, nodes) for item in given.items)
        fields = {"code": Lit(given.code), "args": args}
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
