"""Values that leave a program: its results. A named tuple becomes a tuple, as in the interpreter;
objects of the user's other classes stop the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.ir import types
from sgc.tracing.kinds.records import is_record
from sgc.tracing.kinds.row_types import (
    OBJECT,
    MemberType,
    OptionalType,
    RecordType,
    RowType,
    StateType,
    row_of,
)
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_record import refuse_object
from sgc.tracing.values.items import type_of
from sgc.tracing.values.json.dict_views import needs_list, part_of
from sgc.tracing.values.live.abstract_live import AbstractLive


def leaving(value: Any) -> Any:
    """A value to be returned, without named tuples known only at run time; stops the trace if it
    holds objects of the user's classes."""
    if type(value) is AbstractLive:
        return value.session.seen(value.as_(OBJECT))
    if isinstance(value, AbstractList):
        if part_of(value):
            needs_list(value)
        return _as_tuples(value)
    if is_record(value) and not isinstance(value, tuple):
        refuse_object(type_of(value))
    if isinstance(value, (list, tuple)):
        return _kept(value, [*map(leaving, value)], tuple if isinstance(value, tuple) else list)
    if type(value) is dict:
        made = [*map(leaving, value.values())]
        return _kept(value, made, lambda parts: dict(zip(value, parts, strict=True)))
    return value


def _kept(value: Any, parts: list[Any], make: Callable[[list[Any]], Any]) -> Any:
    """The value itself if no part was replaced, so that paths that differ in parts can merge."""
    own = value.values() if type(value) is dict else value
    is_same = all(part is each for part, each in zip(parts, own, strict=True))
    return value if is_same else make(parts)


def _as_tuples(value: AbstractList) -> Any:
    type_ = value.symbol.type
    made = _plain(type_)
    if made == type_:
        return value
    code = f"def piece(a):\n    return {_written('a', type_)}"
    return value.session.seen(value.session.coded(code, (value,), made))


def _plain(type_: types.Type) -> types.Type:
    """The type of such a value once its named tuples are tuples."""
    if isinstance(type_, MemberType):
        refuse_object(type_)
    if isinstance(type_, RecordType):
        if type_.form != "tuple":
            refuse_object(type_)
        return row_of(map(_plain, type_.row))
    if isinstance(type_, OptionalType):
        of = _plain(type_.of)
        return type_ if of == type_.of else OptionalType(type_.kind, of=of)
    if isinstance(type_, RowType) and not isinstance(type_, StateType) and type_.keys is None:
        return row_of(map(_plain, type_.row))
    if type_.item is None:
        return type_
    item = _plain(type_.item)
    return type_ if item == type_.item else types.list_of(item)


def _written(name: str, type_: types.Type, depth: int = 0) -> str:
    """The code of such a value without named tuples."""
    if _plain(type_) == type_:
        return name
    if isinstance(type_, OptionalType):
        return f"None if {name} is None else {_written(name, type_.of, depth)}"
    if isinstance(type_, (RecordType, RowType)):
        parts = [_written(f"{name}[{n}]", part, depth) for n, part in enumerate(type_.row)]
        return f"({', '.join(parts)},)"
    assert type_.item is not None
    item = f"x{depth}"
    return f"[{_written(item, type_.item, depth + 1)} for {item} in {name}]"
