"""Operators on plain texts that carry markers or have abstract operands."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir.types import BOOL
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.values.abstract import (
    AbstractBool,
    AbstractJson,
    AbstractList,
    AbstractNumber,
    AbstractObject,
    AbstractText,
    is_abstract,
    marked,
    pieces_of,
)
from sgc.tracing.values.computing import formatted_by
from sgc.tracing.values.live.abstract_live import AbstractLive
from sgc.tracing.values.open_fork import EndedChild


def text(value: Any) -> Any:
    """The abstract text for a plain text that carries markers; any other value as it is."""
    if type(value) is not str or not marked(value):
        return value
    session = current_session()
    if session is None or not session.is_tracing:
        return value
    pieces_of(value)  # stops the trace at a marker that was cut apart
    return AbstractText(value, session)  # type: ignore[arg-type]


def is_plain(value: Any, method: str) -> bool:
    """Whether a value is a known text whose `method` is Python's own, which ignores markers."""
    kind = type(value)
    if kind is str:
        return True
    if not isinstance(value, str) or isinstance(value, AbstractText):
        return False
    return getattr(kind, method) is getattr(str, method)


def compared(value: Any) -> Any:
    """An operand of a comparison. A plain text stays as it is, since the abstract operand compares
    both; a text of a user's class becomes abstract, because Python would call the class's own
    comparison, which compares characters.
    """
    if type(value) is str:
        return text(value)
    return _seen(value) if is_plain(value, "__eq__") and is_plain(value, "__lt__") else value


def whole(value: Any) -> Any:
    """The right operand of `in`, in a chain of comparisons."""
    return _seen(value) if is_plain(value, "__contains__") else value


def returned(value: Any) -> Any:
    """The result of `__bool__`, `__len__` and the like, which must not be abstract."""
    if isinstance(value, AbstractBool):
        return bool(value)
    session: Any = current_session()
    if getattr(session, "length_of", None) is sys._getframe(1).f_code:
        return value  # the overlay's `len`, which takes abstract numbers, has called it
    if isinstance(value, (AbstractNumber, AbstractJson)):
        stop("a special method gives a number known only at run time", INTERPRET)
    return value


def or_none(value: Any) -> Any:
    """An operand of `is None`; whether an abstract value is None is decided."""
    return value.or_none() if isinstance(value, (AbstractJson, AbstractLive)) else value


COMPARE = "compare them with ==; or " + INTERPRET


def same(value: Any) -> Any:
    """An operand of `is`; None and bools are decided, so that they are None, True or False."""
    value = or_none(value)
    if type(value) is AbstractLive:
        stop("objects are compared with `is` in a chain", COMPARE)
    if isinstance(value, AbstractJson) and value.is_a(bool):
        return bool(value)
    if type(value) is EndedState:
        value.refuse("is compared with `is`")
    if isinstance(value, EndedChild):
        stop("whether a fork's child is the same stream as another", INTERPRET)
    if isinstance(value, AbstractList) and value.session.is_code(value.symbol):
        stop("whether a value that code returns is the same object as another", COMPARE)
    if type(value) is AbstractObject:  # it may be a member, which Python has once
        stop("whether an argument is the same object as another", COMPARE)
    session: Any = current_session()
    if session is not None and any(each is value for each in getattr(session, "given", ())):
        stop("whether an argument is the same object as another", COMPARE)
    if _is_part(value):
        stop("whether an item of a value known only at run time is the same object", COMPARE)
    return bool(value) if isinstance(value, AbstractBool) else value


def identical(one: Any, other: Any) -> bool:
    """`one is other`."""
    if type(one) is AbstractLive or type(other) is AbstractLive:
        session = one.session if type(one) is AbstractLive else other.session
        code = "def piece(a, b):\n    return a is b"
        return bool(session.performed(code, (one, other), (BOOL,), True)[0])
    return same(one) is same(other)


def _is_part(value: Any) -> bool:
    """Whether a value is read from a list of the graph, which holds copies of the program's
    objects."""
    if type(value) is tuple:
        return any(_is_part(part) or isinstance(part, _SCALARS) for part in value)
    return isinstance(value, AbstractList) and value.session.is_put(value.symbol)


_SCALARS = (AbstractText, AbstractNumber)


def _seen(value: str) -> Any:
    session: Any = current_session()
    return value if session is None or not session.is_tracing else seeing(value, session)


def seeing(value: str, session: Any) -> AbstractText:
    return AbstractText(str.__str__(value), session)


def formatted(value: Any, spec: Any = "") -> Any:
    """`format(value, spec)`; Python's own would read the marker in a specification."""
    spec = text(spec)
    if isinstance(spec, AbstractText) and not _formats_itself(value):
        return formatted_by(spec.session, value, spec)
    return text(format(value, spec))


def _formats_itself(value: Any) -> bool:
    """Whether a method of the program's own reads the specification."""
    return not is_abstract(value) and type(type(value).__format__) is FunctionType


def as_ascii(value: Any) -> str:
    """`ascii(value)`; stops the trace at an abstract value, whose marker `ascii` would escape."""
    if is_abstract(value):
        stop("ascii() of a value known only at run time", "write {ascii(x)}")
    return ascii(value)
