"""Types that only a trace knows: in the graph they are JSON.

Of rows, tuples and dicts of a known form: an item of a list of rows is a tuple, or a dict of typed
values. Of objects: what code gives may be a tuple, a set, or anything else that Python has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgc.ir import types
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type


@dataclass(frozen=True, slots=True)
class RowType(Type):
    """row: the types of its values; keys: of a dict, None of a tuple."""

    row: tuple[Type, ...] = ()
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ObjectType(Type):
    """Of a value that may be of any type of Python's."""


OBJECT = ObjectType(Kind.JSON)


def row_of(found: Iterable[Type], keys: tuple[str, ...] | None = None) -> Type:
    return RowType(Kind.JSON, row=tuple(found), keys=keys)


def plain(type_: Type) -> Type:
    """The type in the graph."""
    if type_.item is not None:
        return types.list_of(plain(type_.item))
    return types.JSON if isinstance(type_, (RowType, ObjectType)) else type_


def joined(one: Type | None, other: Type | None) -> Type | None:
    """The type of what is one of two values, if there is one; None is the type of an empty list."""
    if one is None or other is None or one == other:
        return one or other
    if one.item is None or other.item is None:
        return None
    return types.list_of(joined_item((one.item, other.item)))


def joined_item(found: Iterable[Type]) -> Type:
    """The type of an item that is of one of some types."""
    kinds = list(dict.fromkeys(found))
    if len(kinds) == 1:
        return kinds[0]
    if OBJECT in kinds:
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
