"""Types that only the trace knows; in the graph they are JSON.

A row is a tuple or dict whose values have known types; an item of a list of rows is such a tuple or
dict. An object, as a result of code, may be a tuple, a set, or any other Python value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgc.ir import types
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type


@dataclass(frozen=True, slots=True)
class RowType(Type):
    """row: the types of its values; keys: a dict's keys; None for a tuple."""

    row: tuple[Type, ...] = ()
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ObjectType(Type):
    """The type of a value that may have any Python type."""


OBJECT = ObjectType(Kind.JSON)


@dataclass(frozen=True, slots=True)
class OptionalType(ObjectType):
    """The type of a value that is None or `of`."""

    of: Type = OBJECT


def optional(of: Type) -> Type:
    return OBJECT if isinstance(of, ObjectType) else OptionalType(Kind.JSON, of=of)


_ANNOTATIONS = {types.TEXT: "str", types.INT: "int", types.FLOAT: "float", types.BOOL: "bool"}


def annotation_of(type_: Type) -> str:
    """A type, written as an annotation of Python."""
    if type_.item is not None:
        return f"list[{annotation_of(type_.item)}]"
    if isinstance(type_, RowType) and type_.keys is None:
        return f"tuple[{', '.join(map(annotation_of, type_.row))}]"
    if isinstance(type_, OptionalType):
        return f"{annotation_of(type_.of)} | None"
    return _ANNOTATIONS.get(type_, "object")


def holds_objects(type_: Type) -> bool:
    """Whether a value of this type may be, or be a list of, what no JSON is."""
    return isinstance(type_, ObjectType) or (type_.item is not None and holds_objects(type_.item))


def row_of(found: Iterable[Type], keys: tuple[str, ...] | None = None) -> Type:
    return RowType(Kind.JSON, row=tuple(found), keys=keys)


def plain(type_: Type) -> Type:
    """The type that represents a type in the graph."""
    if type_.item is not None:
        return types.list_of(plain(type_.item))
    return types.JSON if isinstance(type_, (RowType, ObjectType)) else type_


def outer(type_: Type) -> Type:
    """The type of a value in another program: an object if it may be, or hold, what no JSON is."""
    if type_.item is not None:
        return types.list_of(outer(type_.item))
    if isinstance(type_, RowType):
        is_json = type_.keys is not None and OBJECT not in map(outer, type_.row)
        return types.JSON if is_json else OBJECT
    return OBJECT if isinstance(type_, ObjectType) else type_


def joined(one: Type | None, other: Type | None) -> Type | None:
    """The type that covers two types, if there is one; None is the type of an empty list."""
    if one is None or other is None or one == other:
        return one or other
    if one.item is None or other.item is None:
        return None
    return types.list_of(joined_item((one.item, other.item)))


def joined_item(found: Iterable[Type]) -> Type:
    """The type that covers the types of several items."""
    kinds = list(dict.fromkeys(found))
    if len(kinds) == 1:
        return kinds[0]
    if any(map(holds_objects, kinds)):
        return OBJECT
    if {each.kind for each in kinds} <= TEXTUAL:
        return types.TEXT
    rows = [each for each in kinds if isinstance(each, RowType)]
    if len(rows) == len(kinds) and len({(row.keys, len(row.row)) for row in rows}) == 1:
        columns = zip(*(row.row for row in rows), strict=True)
        return row_of((joined_item(column) for column in columns), rows[0].keys)
    lists = [joined(kinds[0], each) for each in kinds[1:]]
    if len(kinds) == 2 and lists[0] is not None:
        return lists[0]
    return types.JSON
