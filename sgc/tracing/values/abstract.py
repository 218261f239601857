"""Abstract values, which a traced program gets in place of arguments and generations.

Abstract text is a `str`, so that it passes checks for one. A pure function of a value becomes a
node, and a test a decision; any other operation stops the trace with the user's line and a way out.
"""

from __future__ import annotations

from random import Random
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.stops import DECIDE, INTERPRET, TraceStop, raise_stop, stop
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import BOOL, INT, TEXT, Kind
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.row_types import (
    MemberType,
    ObjectType,
    RecordType,
    RowType,
    StateType,
)
from sgc.tracing.kinds.text_types import Known
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_number import AbstractBool, AbstractNumber
from sgc.tracing.values.abstract_record import AbstractRecord
from sgc.tracing.values.abstract_text import AbstractText
from sgc.tracing.values.computing import computed, note_known, pieces_of
from sgc.tracing.values.json.abstract_json import AbstractJson, seen
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.json.dict_views import like
from sgc.tracing.values.json.known_json import known_dict
from sgc.tracing.values.live.abstract_live import AbstractLive
from sgc.tracing.values.recorder import Recorder

AbstractFlag = AbstractBool

__all__ = [
    "DECIDE",
    "INTERPRET",
    "AbstractBool",
    "AbstractFlag",
    "AbstractJson",
    "AbstractList",
    "AbstractNumber",
    "AbstractObject",
    "AbstractText",
    "OfTexts",
    "TraceStop",
    "abstract",
    "is_abstract",
    "marked",
    "pieces_of",
    "python_type",
    "raise_stop",
    "stop",
]


class OfTexts:
    """An object that is not data, but whose texts are read by a name or number: a match."""

    __slots__ = ()


def abstract(symbol: Symbol, session: Recorder) -> Any:
    """The abstract value that stands for a symbol, by its type."""
    kind = symbol.type.kind
    if kind in (Kind.TEXT, Kind.CHOICE):
        return AbstractText(session.marker(symbol), session)
    if kind in (Kind.INT, Kind.FLOAT):
        return AbstractNumber(symbol, session)
    if kind is Kind.BOOL:
        return AbstractBool(symbol, session)
    if isinstance(symbol.type, RowType):
        return _row(symbol, symbol.type, session)
    if isinstance(symbol.type, RecordType):
        return AbstractRecord(symbol, session)
    if isinstance(symbol.type, MemberType):
        return _member(symbol, symbol.type.name, session)
    if isinstance(symbol.type, ObjectType):
        return AbstractObject(symbol, session)
    if kind is Kind.LIVE:
        return AbstractLive(symbol, session)
    if kind is Kind.JSON:
        return AbstractJson(symbol, session)
    return AbstractList(symbol, session)


def _member(symbol: Symbol, name: str, session: Recorder) -> Any:
    """The member of an enumeration that a value is, by a decision for each but the last."""
    kind: Any = session.sites.classes[name].kind
    *members, last = kind
    if not members:
        return last
    code = "def piece(a):\n    return a.name"
    told = AbstractText(session.marker(session.made_by(code, types.TEXT, symbol)), session)
    note_known(session, told, Known(options=tuple(kind._member_names_)))
    return next((each for each in members if told == each._name_), last)


def _row(symbol: Symbol, type_: RowType, session: Recorder) -> Any:
    whole = AbstractJson(symbol, session)
    if isinstance(type_, StateType):
        return _ended(whole, type_, session)
    if type_.keys is None:
        return tuple(
            computed(session, "item", whole, n, type_=each) for n, each in enumerate(type_.row)
        )
    parts = {key: _SCHEMAS.get(each, {}) for key, each in zip(type_.keys, type_.row, strict=True)}
    schema = {"type": "object", "properties": parts, "required": [*type_.keys]}
    return known_dict(whole, schema)


def _ended(whole: AbstractJson, type_: StateType, session: Recorder) -> EndedState:
    if type_.keys is None:
        session.refuse_ended("is in a list beside values with other names")
    parts = zip(type_.keys, type_.row, strict=True)
    return EndedState({
        key: seen(computed(session, "item", whole, key, type_=each)) for key, each in parts
    })  # fmt: skip


_SCHEMAS = {TEXT: {"type": "string"}, INT: {"type": "integer"}, BOOL: {"type": "boolean"}}


def is_abstract(value: Any) -> bool:
    """Whether a value is abstract, or a plain text that carries an abstract value."""
    # `isinstance` would ask a value of another class for its `__class__`.
    return issubclass(type(value), _ABSTRACT) or marked(value)


_ABSTRACT = (AbstractText, AbstractNumber, AbstractList, AbstractRandom, AbstractLive)


def marked(text: Any) -> bool:
    """Whether a plain string carries abstract values."""
    return type(text) is str and has_marker(text)


def python_type(value: Any) -> type:
    """The type that a value has at run time."""
    if type(value) is AbstractLive:
        stop("the type of a value known only at run time is asked for", INTERPRET)
    if isinstance(value, AbstractText):
        return str
    if isinstance(value, AbstractObject):
        value.needs_type()
    if isinstance(value, AbstractJson):
        return next(
            (of for of in (str, dict, list, bool, int, float) if value.is_a(of)), type(None)
        )
    if isinstance(value, AbstractList):
        return list if like(value) is None else type(like(value))
    if type(value) is AbstractRandom:
        return Random
    return value.python if isinstance(value, AbstractNumber) else type(value)
