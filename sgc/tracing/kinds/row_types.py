"""Types that only the trace knows; in the graph they are JSON.

A row is a tuple or dict whose values have known types; the items of a list of rows are such tuples
or dicts. An object, as a result of code, may be a tuple, a set, or any other Python value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sgc.core import shapes
from sgc.core.session import current_session
from sgc.ir import types
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type


@dataclass(frozen=True, slots=True)
class RowType(Type):
    """row: the types of its values; keys: a dict's keys; None for a tuple."""

    row: tuple[Type, ...] = ()
    keys: tuple[str, ...] | None = None


RETURNED = ""  # the key of a stream's return value, which is no name


@dataclass(frozen=True, slots=True)
class StateType(RowType):
    """The type of a stream in a list. keys: RETURNED and the stream's names; None if the names are
    not known, or if it is not known whether the value is a stream."""

    @classmethod
    def of(cls, row: Iterable[Type], keys: tuple[str, ...] | None) -> StateType:
        return cls(Kind.JSON, row=tuple(row), keys=keys)


@dataclass(frozen=True, slots=True)
class ObjectType(Type):
    """The type of a value that may have any Python type."""


OBJECT = ObjectType(Kind.JSON)


@dataclass(frozen=True, slots=True)
class OptionalType(ObjectType):
    """The type of a value that is None or `of`."""

    of: Type = OBJECT


@dataclass(frozen=True, slots=True)
class RecordType(ObjectType):
    """The type of an object of a class of the user's. row: the types of its attributes, by `keys`;
    form: `tuple` for a named tuple, `frozen` for other objects whose attributes are never set.
    """

    name: str = ""
    keys: tuple[str, ...] = ()
    row: tuple[Type, ...] = ()
    form: str = ""

    @classmethod
    def of(cls, name: str, keys: tuple[str, ...], row: tuple[Type, ...], form: str) -> RecordType:
        return cls(Kind.JSON, name=name, keys=keys, row=row, form=form)

    def with_row(self, row: Iterable[Type]) -> RecordType:
        return RecordType.of(self.name, self.keys, tuple(row), self.form)


@dataclass(frozen=True, slots=True)
class DictType(ObjectType):
    """The type of a dict. key, value: the types of keys and values; None if it is always empty."""

    key: Type | None = None
    value: Type | None = None

    @classmethod
    def of(cls, key: Type | None, value: Type | None) -> DictType:
        return cls(Kind.JSON, key=key, value=value)


@dataclass(frozen=True, slots=True)
class MemberType(ObjectType):
    """The type of a member of a user's enumeration. name: the class's name."""

    name: str = ""

    @classmethod
    def of(cls, name: str) -> MemberType:
        return cls(Kind.JSON, name=name)


@dataclass(frozen=True, slots=True)
class NothingType(ObjectType):
    """The type of None."""


NOTHING = NothingType(Kind.JSON)


@dataclass(frozen=True, slots=True)
class RandomType(ObjectType):
    """The type of a generator of random numbers."""


RANDOM = RandomType(Kind.JSON)
_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def optional(of: Type) -> Type:
    is_told = isinstance(of, RecordType) or not isinstance(of, ObjectType)
    return OptionalType(Kind.JSON, of=of) if is_told else OBJECT


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
    """Whether a value of this type may be, or be a list of, a value that JSON does not have."""
    return isinstance(type_, ObjectType) or (type_.item is not None and holds_objects(type_.item))


def holds_states(type_: Type) -> bool:
    """Whether a value of this type may be or hold a stream."""
    if isinstance(type_, (RowType, RecordType)):
        return isinstance(type_, StateType) or any(map(holds_states, type_.row))
    return type_.item is not None and holds_states(type_.item)


def is_unchangeable(type_: Type) -> bool:
    """Whether no value of this type can be changed or holds a changeable value."""
    if isinstance(type_, RecordType):
        return bool(type_.form) and all(map(is_unchangeable, type_.row))
    if isinstance(type_, RowType):
        is_fixed = type_.keys is None or isinstance(type_, StateType)
        return is_fixed and all(map(is_unchangeable, type_.row))
    if isinstance(type_, OptionalType):
        return is_unchangeable(type_.of)
    if isinstance(type_, (MemberType, NothingType)):
        return True
    return type_.kind in TEXTUAL or type_ in (types.INT, types.FLOAT, types.BOOL)


def row_of(found: Iterable[Type], keys: tuple[str, ...] | None = None) -> Type:
    return RowType(Kind.JSON, row=tuple(found), keys=keys)


def plain(type_: Type) -> Type:
    """The type that represents a type in the graph."""
    if type_.item is not None:
        item = plain(type_.item)
        return type_ if item is type_.item and type(type_) is Type else types.list_of(item)
    return types.JSON if isinstance(type_, (RowType, ObjectType)) else type_


def outer(type_: Type) -> Type:
    """The type of a value in another program: an object if it may be or hold a non-JSON value."""
    if type_.item is not None:
        return types.list_of(outer(type_.item))
    if isinstance(type_, StateType):
        return OBJECT
    if isinstance(type_, RowType):
        is_json = type_.keys is not None and OBJECT not in map(outer, type_.row)
        return types.JSON if is_json else OBJECT
    return OBJECT if isinstance(type_, ObjectType) else type_


def told_type(schema: shapes.Schema) -> Type:
    """The type of data with this schema; data with tuples, which JSON does not have, is OBJECT."""
    if schema.get("type") == "array":
        item = told_type(schema.get("items", {}))
        return shapes.type_of(schema) if item.kind is not Kind.JSON else types.list_of(item)
    if schema.get("type") == "tuple":
        return row_of(map(told_type, schema["prefixItems"]))
    if schema.get("type") == shapes.OBJECT:
        parts = schema["properties"]
        name = schema["class"].rpartition(":")[2]
        row = tuple(map(told_type, parts.values()))
        return RecordType.of(name, tuple(parts), row, schema.get("form", ""))
    if shapes.holds_objects(schema):
        return OBJECT
    return OBJECT if shapes.holds_tuples(schema) else shapes.type_of(schema)


def joined(one: Type | None, other: Type | None) -> Type | None:
    """The type that covers two types, if there is one; None is the type of an empty list."""
    if one is None or other is None or one == other:
        return one or other
    if one.item is None or other.item is None:
        return _joined_values(one, other)
    return types.list_of(joined_item((one.item, other.item)))


def _joined_values(one: Type, other: Type) -> Type | None:
    """The type of a value that may be None, a text or a number, or any value out of JSON."""
    found = {one, other}
    session: Any = current_session()
    if types.LIVE in found or (session is not None and session.sites.is_live):
        return types.LIVE if all(map(_is_simple, found - {types.LIVE})) else None
    if types.JSON in found and all(map(_is_simple, found - {types.JSON})):
        return types.JSON
    inner = {each.of if isinstance(each, OptionalType) else each for each in found} - {NOTHING}
    if found <= inner or len(inner) != 1:
        return None  # two types, neither of them None
    (of,) = inner
    return optional(of) if of in _SCALARS else None


def _is_simple(type_: Type) -> bool:
    """Whether a value is None or a text, number or bool, as far as its type says."""
    return isinstance(type_, OptionalType) or type_ == NOTHING or type_ in _SCALARS


def joined_item(found: Iterable[Type]) -> Type:
    """The type that covers the types of several items."""
    kinds = list(dict.fromkeys(found))
    if len(kinds) == 1:
        return kinds[0]
    records = [each for each in kinds if isinstance(each, RecordType)]
    if len(records) == len(kinds) and len({(each.name, each.keys) for each in records}) == 1:
        columns = zip(*(each.row for each in records), strict=True)
        return records[0].with_row(map(joined_item, columns))
    joined_rows = _joined_rows(kinds)
    if joined_rows is not None:
        return joined_rows
    if any(map(holds_states, kinds)):
        return _joined_lists(kinds) or StateType.of((), None)
    if any(map(holds_objects, kinds)):
        return OBJECT
    if {each.kind for each in kinds} <= TEXTUAL:
        return types.TEXT
    return _joined_lists(kinds) or (
        OBJECT if OBJECT in map(outer, kinds) else types.JSON  # a tuple is no JSON
    )


def _joined_rows(kinds: list[Type]) -> Type | None:
    """The type of rows of the same form, column by column."""
    rows = [each for each in kinds if isinstance(each, RowType)]
    is_alike = len({(type(row), row.keys, len(row.row)) for row in rows}) == 1
    if len(rows) < len(kinds) or not is_alike:
        return None
    columns = zip(*(row.row for row in rows), strict=True)
    return replace(rows[0], row=tuple(map(joined_item, columns)))


def _joined_lists(kinds: list[Type]) -> Type | None:
    return joined(kinds[0], kinds[1]) if len(kinds) == 2 else None
