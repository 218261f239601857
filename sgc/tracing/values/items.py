"""Items of lists known only at run time: their types, and how they become arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol, symbol_in
from sgc.ir import types
from sgc.ir.graph import Ref
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.row_types import (
    OBJECT,
    MemberType,
    RecordType,
    StateType,
    holds_objects,
    outer,
    row_of,
)
from sgc.tracing.values.recorder import Recorder

MAX_RECORDS = 3  # depth of objects in objects whose types are known
_PLAIN = {bool: types.BOOL, int: types.INT, float: types.FLOAT}


def argument(session: Recorder, value: Any) -> Any:
    """A value as an argument of a function of lists; a tuple becomes a value of the graph."""
    _refuse_named(value)
    value = as_data(session, value)
    is_made = is_record(value) or _is_row(value) or type(value) is EndedState
    return _made(session, value) if is_made else value


def as_data(session: Recorder, value: Any) -> Any:
    """A value in which values of the graph replace members of enumerations."""
    kind = type(value)
    if is_member(value):
        code, type_ = session.record_code(value), _member_type(value)
        return session.made_by(code, type_) if type_ is not None else value
    if kind in (list, tuple) and any(map(_holds_member, value)):
        return kind([as_data(session, each) for each in value])
    if kind is dict and any(map(_holds_member, value.values())):
        return {key: as_data(session, each) for key, each in value.items()}
    return value


def _holds_member(value: Any) -> bool:
    parts = value.values() if type(value) is dict else value
    if type(value) in (list, tuple, dict):
        return any(map(_holds_member, parts))
    return is_member(value)


def _member_type(value: Any) -> types.Type | None:
    """The type of a member of an enumeration, if code can have the member."""
    session: Any = current_session()
    code_of = getattr(session, "record_code", None)
    return MemberType.of(type(value).__name__) if code_of is not None and code_of(value) else None


def _refuse_named(value: Any) -> None:
    """Stops the trace for named tuples and the like, which would be plain tuples in the graph."""
    kind = type(value)
    if isinstance(value, tuple) and kind is not tuple and not is_record(value):
        stop(
            f"a {kind.__name__} is put into a list known only at run time, or looked for in one",
            hint="write a tuple or a dict of its parts; or " + INTERPRET,
        )
    if kind in (list, dict, tuple):
        for each in value.values() if kind is dict else value:
            _refuse_named(each)


def _is_row(value: Any) -> bool:
    if type(value) is dict:
        return any(map(_is_row, value.values()))
    return type(value) is tuple or (type(value) is list and any(map(_is_row, value)))


def _made(session: Recorder, value: Any) -> Symbol:
    """A tuple, or a value that holds one, as a value of the graph: arguments can only be lists."""
    operand = session.operand(value)
    assert isinstance(operand, Ref)
    is_told = is_record(value) or type(value) is EndedState
    return Symbol(operand.name, type_of(value) if is_told else types.JSON)


@dataclass(frozen=True, slots=True)
class StandIn:
    """Stands for an item of an abstract list."""

    type: types.Type


def type_of(item: Any, n_left: int = MAX_RECORDS) -> types.Type:
    """The type of a value, as an item of a list. n_left: how deep the types of objects go."""
    if isinstance(item, StandIn):
        return item.type
    member = _member_type(item) if is_member(item) else None
    if member is not None:
        return member
    if issubclass(type(item), str):
        return types.TEXT
    if type(item) is EndedState:
        return StateType.of(map(type_of, item.parts.values()), tuple(item.parts))
    if is_record(item):
        return _record_type(item, n_left) if n_left else OBJECT
    symbol = symbol_in(item)
    if symbol is not None:
        return symbol.type  # type: ignore[no-any-return]
    if type(item) is tuple and item:
        return row_of(map(type_of, item))
    if type(item) is dict and item and all(type(key) is str for key in item):
        return row_of(map(type_of, item.values()), tuple(item))
    return _PLAIN.get(type(item)) or (types.JSON if _is_json(item) else OBJECT)


def _record_type(item: Any, n_left: int) -> types.Type:
    parts = parts_of(item)
    row = tuple(type_of(part, n_left - 1) for part in parts.values())
    return RecordType.of(type(item).__name__, tuple(parts), row, form_of(item))


def _is_json(value: Any) -> bool:
    """Whether a value is JSON, its parts included."""
    if is_member(value):
        return _member_type(value) is None
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    if value is None or type(value) in _PLAIN or isinstance(value, str):
        return True
    symbol = symbol_in(value)
    return symbol is not None and not holds_objects(outer(symbol.type))
