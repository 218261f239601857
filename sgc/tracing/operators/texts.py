"""Operators on texts: what a plain text that carries markers, or is given one, cannot see."""

from __future__ import annotations

import operator
import string
from collections.abc import Callable
from types import (
    BuiltinMethodType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

from sgc.session import current_session
from sgc.tracing.abstract import (
    AbstractBool,
    AbstractJson,
    AbstractList,
    AbstractNumber,
    AbstractText,
    is_abstract,
    marked,
    pieces_of,
)
from sgc.tracing.stops import INTERPRET, stop

# Python's builtins, and those that know abstract values; see `overlay_builtins`.
KNOWING: dict[Any, Any] = {}

_FILLING = ("format", "format_map")


def text(value: Any) -> Any:
    """A plain text that carries markers is made the abstract text that it is."""
    if type(value) is not str or not marked(value):
        return value
    session = current_session()
    if session is None or not session.is_tracing:
        return value
    pieces_of(value)  # stops the trace at a marker that was cut apart
    return AbstractText(value, session)  # type: ignore[arg-type]


def is_plain(value: Any, method: str) -> bool:
    """Whether a text that is known is one whose method is Python's own, which sees no markers."""
    kind = type(value)
    if kind is str:
        return True
    if not isinstance(value, str) or isinstance(value, AbstractText):
        return False
    return getattr(kind, method) is getattr(str, method)


def contains(part: Any, whole: Any) -> bool:
    """`part in whole`."""
    part, whole = text(part), text(whole)
    if isinstance(part, AbstractText) and is_plain(whole, "__contains__"):
        return _seeing(whole, part.session).__contains__(part)
    if type(whole) in (list, tuple) and (is_abstract(part) or any(map(is_abstract, whole))):
        return compared(part) in [*map(compared, whole)]
    return part in whole


def compared(value: Any) -> Any:
    """An operand of a comparison. Of a plain text, one that is abstract answers for both; for a
    text of the user's class Python asks that, which compares characters.
    """
    if type(value) is str:
        return text(value)
    return _seen(value) if is_plain(value, "__eq__") and is_plain(value, "__lt__") else value


def whole(value: Any) -> Any:
    """What `in` looks into, in a chain of comparisons."""
    return _seen(value) if is_plain(value, "__contains__") else value


def returned(value: Any) -> Any:
    """What `__bool__`, `__len__` and the like give: no value of ours."""
    if isinstance(value, AbstractBool):
        return bool(value)
    if isinstance(value, (AbstractNumber, AbstractJson)):
        stop("a special method gives a number known only when the program runs", INTERPRET)
    return value


def _seen(value: str) -> Any:
    session: Any = current_session()
    return value if session is None or not session.is_tracing else _seeing(value, session)


def _seeing(value: str, session: Any) -> AbstractText:
    return AbstractText(str.__str__(value), session)


def as_ascii(value: Any) -> str:
    """`ascii(value)`, which would escape a marker."""
    if is_abstract(value):
        stop("ascii() of a value known only when the program runs", "write {x} or {x!r}")
    return ascii(value)


def callee(function: Any) -> Any:
    """What is called in place of a function: one that knows abstract values.

    Methods of a plain text, and the user's own functions and methods that are not converted yet.
    """
    session = current_session()
    if session is None or not session.is_tracing:
        return function
    kind = type(function)
    if kind is BuiltinMethodType or kind is MethodWrapperType:
        receiver = function.__self__
        if isinstance(receiver, str) and not isinstance(receiver, AbstractText):
            return _PlainMethod(function)
        return KNOWING.get(function, function)
    if kind is type:
        return KNOWING.get(function, function)
    if kind in (MethodDescriptorType, WrapperDescriptorType) and function.__objclass__ is str:
        return _Unbound(function)
    if kind is FunctionType:
        return session.entered(function)
    if kind is MethodType and type(function.__func__) is FunctionType:
        entered = session.entered(function.__func__)
        return function if entered is function.__func__ else MethodType(entered, function.__self__)
    return function


class _PlainMethod:
    """A method of a plain text."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function: Any = self._function
        receiver, name = function.__self__, function.__name__
        if marked(receiver):
            return getattr(text(receiver), name)(*args, **kwargs)
        if not _is_given_abstract(name, args, kwargs):
            return text(function(*args, **kwargs))
        if name in _FILLING:
            _refuse_ascii(receiver)
            return text(function(*args, **kwargs))
        return getattr(_seeing(receiver, current_session()), name)(*args, **kwargs)


class _Unbound:
    """A method of `str`, called with the text as its first argument: `str.strip(x)`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], str):
            return callee(getattr(text(args[0]), self._function.__name__))(*args[1:], **kwargs)
        return self._function(*args, **kwargs)


def _is_given_abstract(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a method of a plain text has an argument that it must not be shown.

    What `join` is given it joins, markers and all; of a list known only at run time it sees none.
    """
    if name == "join":
        return any(isinstance(arg, AbstractList) for arg in args)
    if name == "format_map":
        return True
    given = [*args, *kwargs.values()]
    return any(
        is_abstract(each) for arg in given for each in (arg if isinstance(arg, tuple) else (arg,))
    )


def _refuse_ascii(template: str) -> None:
    if any(conversion == "a" for *_, conversion in string.Formatter().parse(template)):
        stop("{!a} of a value known only when the program runs", "write {} or {!r}")


def _comparing(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: function(compared(left), compared(right))


KNOWING[operator.contains] = lambda whole, part: contains(part, whole)
for _function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    KNOWING[_function] = _comparing(_function)
