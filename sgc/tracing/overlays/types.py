"""Stand-ins for `int`, `float` and `type`, which also handle abstract values.

Each is a subclass with a metaclass, so that code that takes a type (`isinstance`, `case int()`,
`class A(int)`, `dtype=int`) works with the stand-in as with the type; plain numbers stay plain.
"""

from __future__ import annotations

from random import Random
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.ir.types import Kind
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.text_types import Known, known_of
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractNumber,
    is_abstract,
    python_type,
)
from sgc.tracing.values.computing import attempted, computed, symbol_of
from sgc.tracing.values.json.dict_views import like
from sgc.tracing.values.tool_failures import TracedTold, is_told


class _Standing(type):
    """The metaclass of a class that stands for one of Python's types, the class's first base."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in STANDS_FOR:
            return super().__call__(*args, **kwargs)
        if args and is_abstract(args[0]):
            return _converted(STANDS_FOR[cls], *args, **kwargs)
        return STANDS_FOR[cls](*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        of = STANDS_FOR.get(cls)
        return super().__instancecheck__(value) if of is None else is_instance(value, of)

    def __subclasscheck__(cls, other: type) -> bool:
        of = STANDS_FOR.get(cls)
        return super().__subclasscheck__(other) if of is None else issubclass(other, of)

    def __eq__(cls, other: object) -> bool:
        return other is cls or (cls in STANDS_FOR and other is STANDS_FOR[cls])

    def __hash__(cls) -> int:
        return type.__hash__(_BY_ID.get(id(cls), cls))

    def __repr__(cls) -> str:
        return repr(_BY_ID[id(cls)]) if id(cls) in _BY_ID else super().__repr__()

    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(STANDS_FOR.get(cls, source))


_BY_ID: dict[int, type] = {}
STANDS_FOR: dict[type, type] = {}


def _standing(of: type) -> type:
    made = _Standing(of.__name__, (of,), {"__module__": "builtins", "__slots__": ()})
    _BY_ID[id(made)] = of
    STANDS_FOR[made] = of
    return made


Int = _standing(int)
Float = _standing(float)


def is_instance(value: Any, *of: type) -> bool:
    """`isinstance` with Python's own types; a decision for a value out of JSON."""
    if isinstance(value, AbstractJson):
        return value.is_a(*of)
    if isinstance(value, AbstractNumber):
        return _is_number(value, of)
    if isinstance(value, AbstractList):
        return issubclass(list if like(value) is None else type(like(value)), of)
    if isinstance(value, TracedTold):
        return is_told(value, of)
    if type(value) is AbstractRandom:
        return issubclass(Random, of)
    return isinstance(value, of)


def _is_number(number: AbstractNumber, of: tuple[type, ...]) -> bool:
    """Whether a number is of one of these types; int or float is a decision, as an int may be given
    where a float is expected."""
    is_float = issubclass(float, of)
    if number.python is not float or issubclass(int, of) == is_float:
        return issubclass(number.python, of)
    return bool(computed(number.session, "is_a", number, "float")) is is_float


class _TypeOfType(type):
    """The metaclass of `Type`: `type(x)` returns the type or its stand-in; with three arguments it
    makes a class."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Type and len(args) == 1 and not kwargs:
            return _type_of(args[0])
        return type.__call__(type if cls is Type else cls, *args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type) if cls is Type else super().__instancecheck__(value)


Type = _TypeOfType("type", (type,), {"__module__": "builtins"})


def _type_of(value: Any) -> Any:
    if isinstance(value, AbstractNumber) and value.python is float:
        return Float if _is_number(value, (float,)) else Int
    return _seen_as(python_type(value))


def _seen_as(of: type) -> type:
    return {int: Int, float: Float}.get(of, of)


# -- conversions ----------------------------------------------------------------------------


def _converted(of: type, value: Any, *args: Any, **kwargs: Any) -> Any:
    session = value.session if hasattr(value, "session") else _session()
    if of is float:
        return _float(session, value)
    base = [*args, *kwargs.values()]
    if base and (not isinstance(value, str) or is_abstract(base[0])):
        stop("int() with a base", hint="give it a text, and a base of your own; or " + INTERPRET)
    return _int(session, value, *base)


def _session() -> Any:
    from sgc.core.session import current_session

    return current_session()


def _int(session: Any, value: Any, *base: int) -> Any:
    if isinstance(value, str):
        is_known = not base and _known(session, value).is_int
        record = computed if is_known else _value_errors
        return record(session, "int", value, *base, type_=types.INT)
    if isinstance(value, AbstractJson):
        return attempted(session, "int", value)
    if isinstance(value, AbstractNumber):
        is_float = value.symbol.type.kind is Kind.FLOAT
        return value.__trunc__() if is_float else computed(session, "int", value)
    return int(value)  # raises Python's own error


def _float(session: Any, value: Any) -> Any:
    if isinstance(value, str):
        record = computed if _known(session, value).is_float else _value_errors
        return record(session, "float", value, type_=types.FLOAT)
    if isinstance(value, AbstractJson):
        return attempted(session, "float", value)
    if isinstance(value, AbstractNumber):
        kind = value.symbol.type.kind
        if kind is Kind.INT:
            return attempted(session, "float", value, errors=("OverflowError",))
        return computed(session, "float", value)
    return float(value)  # raises Python's own error


def _value_errors(session: Any, fn: str, *args: Any, type_: types.Type) -> Any:
    return attempted(session, fn, *args, type_=type_, errors=("ValueError",))


def _known(session: Any, text: str) -> Known:
    """What is known of a text; nothing if it has several pieces."""
    symbol = symbol_of(text) if has_marker(text) else None
    return known_of(symbol, session) if symbol is not None else Known()
