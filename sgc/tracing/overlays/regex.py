"""`re` for abstract values.

Whether a pattern matches is decided at once: a program may test `m is None`, which calls no method.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from sgc.core.places import here
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.runtime.executor.functions.regex_functions import template_pieces
from sgc.runtime.executor.patterns.linear_regex import Shape, shape_of
from sgc.runtime.executor.patterns.regex_classes import UnsupportedPattern
from sgc.tracing.overlays.matches import AbstractMatch, Found
from sgc.tracing.values.abstract import AbstractList, AbstractNumber, is_abstract
from sgc.tracing.values.computing import computed
from sgc.tracing.values.json.abstract_json import AbstractJson
from sgc.tracing.values.text_methods import stand_in


class SeeingPattern:
    """A compiled pattern that records its work on abstract texts."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return re.Pattern

    def __getattr__(self, name: str) -> Any:
        method = _METHODS.get(name)
        if method is None:
            return getattr(self._pattern, name)
        return Method(self._pattern, method)

    def __eq__(self, other: object) -> bool:
        return self._pattern == (other._pattern if type(other) is SeeingPattern else other)

    def __hash__(self) -> int:
        return hash(self._pattern)

    def __repr__(self) -> str:
        return repr(self._pattern)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a pattern, which is also called with abstract texts."""

    pattern: re.Pattern[str]
    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.pattern, *args, **kwargs)

    def found(self, repl: Any, string: Any, count: Any = 0) -> Found | None:
        """For `sub` with a function on an abstract text: the matches, to which the program's
        function is applied one by one; otherwise None."""
        if self.function is not _sub or not callable(repl) or isinstance(repl, str):
            return None
        string = _text(string)
        if not is_abstract(string):
            return None
        shape = _shape(self.pattern, is_repeated=True)
        return Found(string, SeeingPattern(self.pattern), shape, count)


def _shape(pattern: re.Pattern[str], is_repeated: bool = False) -> Shape:
    """The shape of a pattern; stops the trace if it cannot be matched in linear time."""
    try:
        shape = shape_of(pattern.pattern, pattern.flags)
    except UnsupportedPattern as error:
        stop(error.message, f"{error.hint}; or {INTERPRET}")
    if is_repeated and not shape.skips_none:
        stop(
            "the pattern may match the empty text before others that begin there",
            hint="use + in place of *?, or write the empty alternative last; or " + INTERPRET,
        )
    return shape


def _text(given: Any) -> Any:
    """The text in which a pattern is matched. A value of unknown type is decided to be a text, or
    becomes a plain value of another type, for which Python raises its own error."""
    if isinstance(given, AbstractJson):
        return given.as_argument()
    return stand_in(given) if isinstance(given, (AbstractNumber, AbstractList)) else given


def _one(name: str) -> Callable[..., Any]:
    def method(pattern: re.Pattern[str], string: Any, *places: Any) -> Any:
        string = _text(string)
        if not is_abstract(string):
            return getattr(pattern, name)(string, *places)
        if places:
            stop(f"{name} with a position", hint="search in text[start:end]; or " + INTERPRET)
        shape = _shape(pattern)
        spans = _computed(f"re_{name}", pattern, string, type_=types.list_of(types.JSON))
        return AbstractMatch(spans, string, SeeingPattern(pattern), shape) if spans else None

    return method


def _findall(pattern: re.Pattern[str], string: Any, *places: Any) -> Any:
    string = _text(string)
    if not is_abstract(string):
        return pattern.findall(string, *places)
    n_groups = _shape(pattern, is_repeated=True).n_groups
    if n_groups > 1 or places:
        stop(
            "findall of several groups, or with a position",
            hint="write one group, or none; or " + INTERPRET,
        )
    return _computed("re_findall", pattern, string, type_=types.list_of(types.TEXT))


def _finditer(pattern: re.Pattern[str], string: Any, *places: Any) -> Any:
    string = _text(string)
    if not is_abstract(string):
        return pattern.finditer(string, *places)
    if places:
        stop("finditer with a position", hint="search in text[start:end]; or " + INTERPRET)
    shape = _shape(pattern, is_repeated=True)
    return Found(string, SeeingPattern(pattern), shape).matches()


def _split(pattern: re.Pattern[str], string: Any, maxsplit: int = 0) -> Any:
    string = _text(string)
    if not is_abstract(string):
        return pattern.split(string, maxsplit)
    if _shape(pattern, is_repeated=True).n_groups:
        stop("re.split with groups", hint="write groups as (?: … ); or " + INTERPRET)
    return _computed("re_split", pattern, string, maxsplit, type_=types.list_of(types.TEXT))


def _sub(pattern: re.Pattern[str], repl: Any, string: Any, count: int = 0) -> Any:
    string = _text(string)
    if not is_abstract(string) and not is_abstract(repl):
        return pattern.sub(repl, string, count)
    if not isinstance(repl, str) or is_abstract(repl):
        stop(
            "re.sub with a replacement that is a function, or known only at run time",
            hint="write a call with a function as its own line, text = p.sub(f, text), and other "
            "replacements into the program, groups as \\1; or " + INTERPRET,
        )
    _shape(pattern, is_repeated=True)
    try:
        template_pieces(repl, pattern.pattern, pattern.flags)
    except UnsupportedPattern as error:
        stop(error.message, error.hint)
    return _computed("re_sub", pattern, string, repl, count)


def _computed(fn: str, pattern: re.Pattern[str], *args: Any, **kwargs: Any) -> Any:
    session: Any = current_session()
    _shape(pattern)
    return computed(session, fn, pattern.pattern, pattern.flags, *args, **kwargs)


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def method(pattern: re.Pattern[str], *args: Any, **kwargs: Any) -> Any:
        if any(map(is_abstract, (*args, *kwargs.values()))):
            stop(f"re.{name} of a text known only at run time", f"{instead}; {INTERPRET}")
        return getattr(pattern, name)(*args, **kwargs)

    return method


_METHODS: dict[str, Callable[..., Any]] = {
    "match": _one("match"),
    "search": _one("search"),
    "fullmatch": _one("fullmatch"),
    "findall": _findall,
    "finditer": _finditer,
    "split": _split,
    "sub": _sub,
    "subn": _refused("subn", "use re.sub"),
}


def _pattern(given: Any, flags: int) -> re.Pattern[str]:
    if is_abstract(given):
        _refuse_pattern()
    if type(given) is SeeingPattern:
        given = given._pattern
    return re.compile(given, flags)


def _refuse_pattern() -> NoReturn:
    stop(
        f"a pattern known only at run time ({here()})",
        hint="use find, split and the like; bind the argument that gives it; or " + INTERPRET,
    )


def _of_module(name: str) -> Callable[..., Any]:
    n_before = 2 if name in ("sub", "subn") else 1

    def function(pattern: Any, *args: Any, flags: int = 0, **kwargs: Any) -> Any:
        given = list(args)
        n_options = {"sub": 1, "subn": 1, "split": 1}.get(name, 0)
        if len(given) > n_before + n_options:
            flags = given.pop()
        return getattr(SeeingPattern(_pattern(pattern, flags)), name)(*given, **kwargs)

    function.__name__ = name
    return function


@dataclass(frozen=True, slots=True)
class Substitution:
    """`re.sub`."""

    function: Callable[..., Any]
    __wrapped__ = staticmethod(re.sub)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def found(self, pattern: Any, repl: Any, string: Any, count: Any = 0, flags: int = 0) -> Any:
        return Method(_pattern(pattern, flags), _sub).found(repl, string, count)


def _compile(pattern: Any, flags: int = 0) -> SeeingPattern:
    return SeeingPattern(_pattern(pattern, flags))


def _escape(text: Any) -> Any:
    re.escape(stand_in(text))  # raises Python's own error for what is no text
    return computed(current_session(), "re_escape", text) if is_abstract(text) else re.escape(text)  # type: ignore[arg-type]


RE_FUNCTIONS: dict[str, Any] = {
    **{name: _of_module(name) for name in _METHODS},
    "sub": Substitution(_of_module("sub")),
    "compile": _compile,
    "escape": _escape,
}
