"""Replaces called functions by functions that handle abstract values."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import operator
import string
import sys
from collections.abc import Callable
from io import TextIOBase
from types import (
    BuiltinMethodType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import stop
from sgc.ir.types import TEXT
from sgc.tracing.code.calling import made_by, note_call, start_of
from sgc.tracing.operators.attributes import getting_attributes
from sgc.tracing.operators.cached import caching
from sgc.tracing.operators.lists import LISTS, comparing_method
from sgc.tracing.operators.live.calls import live_callee
from sgc.tracing.operators.lookups import ORDERED, contains, getting, member_of
from sgc.tracing.operators.models import of_pydantic
from sgc.tracing.operators.reading import by_name, carries, guarded, is_librarys, told_apart
from sgc.tracing.operators.records import LOOKING
from sgc.tracing.operators.surroundings import refuse_asking
from sgc.tracing.operators.texts import compared, formatted, seeing, text
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractText,
    is_abstract,
    marked,
)
from sgc.tracing.values.computing import computed

# Python's builtins, with replacements that handle abstract values; see `overlays/builtins.py`.
KNOWING: dict[Any, Any] = {}
# For some of Python's types, what makes a stand-in whose methods handle abstract values.
STANDING: dict[type, Callable[[Any], Any]] = {}

_FILLING = ("format", "format_map")
_WRITES = ("write", "writelines")


def callee(function: Any) -> Any:
    """The function to call instead of the given one, so that abstract values are handled.

    Replaces builtins and methods of Python's types; converts the user's own functions and methods.
    """
    session: Any = current_session()
    if session is None or not session.is_tracing:
        return function
    frame = sys._getframe(1)
    note_call(session, frame, function)
    function = refuse_asking(session, function, frame)
    if session.sites.is_live:
        found = live_callee(session, function, _callee)
        if found is not None:
            return found
    return _callee(function)


def _callee(function: Any) -> Any:
    """The function to call instead of the given one, if no argument is a live object."""
    session: Any = current_session()
    kind = type(function)
    if isinstance(function, (BuiltinMethodType, MethodWrapperType)):
        receiver = function.__self__
        if isinstance(receiver, str) and not isinstance(receiver, AbstractText):
            return _PlainMethod(function)
        if type(receiver) in LISTS:
            return comparing_method(function)
        if type(receiver) in (dict, *ORDERED) and function.__name__ == "get":
            return getting(function)
        standing = TextIOBase if isinstance(receiver, TextIOBase) else type(receiver)
        if standing in STANDING:
            return getattr(STANDING[standing](receiver), function.__name__)
        return _known(function)
    if isinstance(function, type):
        making = of_pydantic(function) or member_of(function) or _making(session, function)
        return making or _known(function)
    if kind in (MethodDescriptorType, WrapperDescriptorType) and function.__objclass__ is str:
        return _Unbound(function)
    if kind is MethodDescriptorType:
        return _unbound(function)
    if kind is functools.partial:
        return functools.partial(callee(function.func), *function.args, **function.keywords)
    if kind is FunctionType:
        return KNOWING.get(function) or session.entered(function)
    if kind is functools._lru_cache_wrapper:
        return caching(function)
    if kind is operator.attrgetter:
        return getting_attributes(function)
    if kind is MethodType and type(function.__func__) is functools._lru_cache_wrapper:
        return functools.partial(caching(function.__func__), function.__self__)
    is_write = kind is MethodType and getattr(function, "__name__", "") in _WRITES
    if is_write and session.shown_on(function.__self__):
        return getattr(STANDING[TextIOBase](function.__self__), function.__name__)
    if kind is MethodType and type(function.__self__) in STANDING:
        return getattr(STANDING[type(function.__self__)](function.__self__), function.__name__)
    if kind is MethodType and type(function.__func__) is FunctionType:
        watched = of_pydantic(function)
        if watched is not None:
            return watched
        entered = session.entered(function.__func__)
        return function if entered is function.__func__ else MethodType(entered, function.__self__)
    return function


def _making(session: Any, of: Any) -> Callable[..., Any] | None:
    """Makes an object of a user's class, with `__init__` called as any other method; None for a
    class whose objects Python makes in another way."""
    start = start_of(of)
    if start is None or not start.__code__.co_filename.endswith(".py"):  # generated by a library
        return None
    entered = session.entered(start)
    return None if entered is start else made_by(of, entered)


def _known(function: Any) -> Any:
    """A replacement for a function or type written in C that handles or refuses abstract values."""
    found = KNOWING.get(function) if type(function).__hash__ is not None else None
    if found is not None:
        return found
    if any(function is each for each in _BY_NAME):
        return by_name(function)
    if not carries(function):
        return guarded(function)
    return told_apart(function) if is_librarys(function) else function


_BY_NAME = (getattr, hasattr, setattr, delattr)


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
            return text(_filled(function, args, kwargs))
        return getattr(seeing(receiver, current_session()), name)(*args, **kwargs)


class _Unbound:
    """A method of `str`, called with the text as its first argument: `str.strip(x)`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], AbstractJson):
            args = (self._as_text(args[0]), *args[1:])
        if args and isinstance(args[0], str):
            return callee(getattr(text(args[0]), self._function.__name__))(*args[1:], **kwargs)
        return self._function(*args, **kwargs)

    def _as_text(self, value: AbstractJson) -> Any:
        """A value out of JSON as a text, if it is one; else code raises Python's own error."""
        if value.is_a(str):
            return computed(value.session, "as", value, "str", "", type_=TEXT)
        code = f"def piece(value):\n    return str.{self._function.__name__}(value)"
        return value.session.coded(code, (value,), TEXT)


def _unbound(function: Any) -> Callable[..., Any]:
    """A method of a list or dict, called with the list or dict as its first argument."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], AbstractList):
            return getattr(args[0], function.__name__)(*args[1:], **kwargs)
        return function(*args, **kwargs)

    return call


def _is_given_abstract(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a method of a plain text has an argument that Python's own method must not get.

    `join` carries markers, but cannot read an abstract list.
    """
    if name == "join":
        return any(isinstance(arg, AbstractList) for arg in args)
    if name == "format_map":
        return True
    given = [*args, *kwargs.values()]
    return any(
        is_abstract(each) for arg in given for each in (arg if isinstance(arg, tuple) else (arg,))
    )


def _filled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A template's `format` or `format_map`."""
    template = function.__self__
    parts = list(string.Formatter().parse(template))
    if any(conversion == "a" for *_, conversion in parts):
        stop("{!a} of a value known only at run time", "write {}, and ascii(x) as its argument")
    if not any("{" in (spec or "") for _, _, spec, _ in parts):
        return function(*args, **kwargs)
    if function.__name__ == "format_map":
        return _Filler().vformat(template, (), *args)
    return _Filler().vformat(template, args, kwargs)


class _Filler(string.Formatter):
    """Fills templates with specifications that hold fields."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        return formatted(value, format_spec)


def _comparing(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: function(compared(left), compared(right))


def passed(function: Any) -> Any:
    """A function for C code to call, whose results are abstract: C code would compare and hash a
    plain text by its marker.
    """
    if not callable(function):
        return function
    called = callee(function)
    return lambda *args, **kwargs: text(called(*args, **kwargs))


def _calling(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that calls one of its arguments, given by its position or a keyword."""
    python = function if carries(function) else guarded(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [passed(arg) if n == place else arg for n, arg in enumerate(args)]
        named = {name: passed(arg) if name in _CALLED else arg for name, arg in kwargs.items()}
        return python(*given, **named)

    return call


_CALLED = ("key", "func")
_BY_NAME_ALONE = 99
_CALLING: dict[Callable[..., Any], int] = {
    map: 0, filter: 0, functools.reduce: 0, functools.cmp_to_key: 0, itertools.starmap: 0,
    itertools.filterfalse: 0, itertools.takewhile: 0, itertools.dropwhile: 0,
    itertools.accumulate: 1, itertools.groupby: 1, heapq.nlargest: 2, heapq.nsmallest: 2,
    heapq.merge: _BY_NAME_ALONE, bisect.bisect: _BY_NAME_ALONE, bisect.insort: _BY_NAME_ALONE,
    bisect.bisect_left: _BY_NAME_ALONE, bisect.insort_left: _BY_NAME_ALONE,
}  # fmt: skip
for _caller, _place in _CALLING.items():
    KNOWING[_caller] = _calling(_caller, _place)
KNOWING |= LOOKING
KNOWING[format] = formatted
KNOWING[operator.add] = KNOWING[operator.concat] = lambda left, right: left + right
KNOWING[operator.contains] = lambda whole, part: contains(part, whole)
for _function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    KNOWING[_function] = _comparing(_function)
