"""`re` for abstract values.

Whether a pattern matches is decided at once: a program may test `m is None`, which calls no method.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from sgc.core.places import here, is_ours
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.runtime.executor.functions.regex_functions import template_pieces
from sgc.runtime.executor.patterns.linear_regex import Shape, shape_of
from sgc.runtime.executor.patterns.regex_classes import UnsupportedPattern
from sgc.tracing.values.abstract import AbstractList, AbstractNumber, is_abstract
from sgc.tracing.values.abstract_json import NAMES, AbstractJson
from sgc.tracing.values.computing import computed
from sgc.tracing.values.text_methods import stand_in


class SeeingPattern:
    """A compiled pattern that records what it does to abstract texts."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return re.Pattern

    def __getattr__(self, name: str) -> Any:
        method = _METHODS.get(name)
        if method is None:
            return getattr(self._pattern, name)
        return lambda *args, **kwargs: method(self._pattern, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self._pattern == (other._pattern if type(other) is SeeingPattern else other)

    def __hash__(self) -> int:
        return hash(self._pattern)

    def __repr__(self) -> str:
        return repr(self._pattern)


class AbstractMatch:
    """A match in an abstract text."""

    __slots__ = ("_shape", "_spans", "re", "session", "string")

    def __init__(self, spans: Any, text: Any, pattern: re.Pattern[str], shape: Shape) -> None:
        self._spans, self._shape = spans, shape
        self.string, self.re = text, SeeingPattern(pattern)
        self.session: Any = current_session()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self) if is_ours(1) else re.Match

    def group(self, *groups: Any) -> Any:
        if len(groups) <= 1:
            return self[groups[0] if groups else 0]
        return tuple(self[group] for group in groups)

    def __getitem__(self, group: Any) -> Any:
        return self._text(self._number(group), None)

    def groups(self, default: Any = None) -> Any:
        return tuple(self._text(i, default) for i in range(1, self._shape.n_groups + 1))

    def groupdict(self, default: Any = None) -> Any:
        return {name: self._text(number, default) for name, number in self._shape.names.items()}

    def start(self, group: Any = 0) -> Any:
        return self._place("re_start", group)

    def end(self, group: Any = 0) -> Any:
        return self._place("re_end", group)

    def span(self, group: Any = 0) -> Any:
        return self.start(group), self.end(group)

    def _place(self, fn: str, group: Any) -> Any:
        number = self._number(group)
        return computed(self.session, fn, self._spans, number) if self._took_part(number) else -1

    def _text(self, number: int, default: Any) -> Any:
        if not self._took_part(number):
            return default
        return computed(self.session, "re_group", self._spans, number, self.string)

    def _took_part(self, number: int) -> bool:
        """Whether a group has matched; a decision unless the pattern says so."""
        if number in self._shape.sure:
            return True
        return bool(computed(self.session, "re_took_part", self._spans, number))

    def _number(self, group: Any) -> int:
        number = self._shape.names.get(group) if isinstance(group, str) else group
        if type(number) is not int or not 0 <= number <= self._shape.n_groups:
            raise IndexError("no such group")
        return number

    def __getattr__(self, name: str) -> Any:
        if hasattr(re.Match, name):
            stop(
                f"{name} of a match known only at run time",
                hint="use group, groups, groupdict, start, end and span; or " + INTERPRET,
            )
        raise AttributeError(f"'re.Match' object has no attribute {name!r}")


def _shape(pattern: re.Pattern[str], may_be_empty: bool = True) -> Shape:
    """The shape of a pattern; stops the trace if it cannot be matched in linear time."""
    try:
        shape = shape_of(pattern.pattern, pattern.flags)
    except UnsupportedPattern as error:
        stop(error.message, f"{error.hint}; or {INTERPRET}")
    if shape.may_be_empty and not may_be_empty:
        stop(
            "the pattern may match the empty text, of which there are many in any",
            hint="use + in place of *, so that each match has a character; or " + INTERPRET,
        )
    return shape


def _text(given: Any) -> Any:
    """What a pattern is matched in. A value of unknown type is decided to be a text, or becomes
    a plain one of another type, for which Python raises its own error."""
    if isinstance(given, AbstractJson):
        if given.is_a(str):
            return given.as_text("strip")
        return next((of() for of in NAMES if of is not str and given.is_a(of)), 0)
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
        return AbstractMatch(spans, string, pattern, shape) if spans else None

    return method


def _findall(pattern: re.Pattern[str], string: Any, *places: Any) -> Any:
    string = _text(string)
    if not is_abstract(string):
        return pattern.findall(string, *places)
    if _shape(pattern, may_be_empty=False).n_groups > 1 or places:
        stop(
            "findall of several groups, or with a position",
            hint="write one group, or none; or " + INTERPRET,
        )
    return _computed("re_findall", pattern, string, type_=types.list_of(types.TEXT))


def _split(pattern: re.Pattern[str], string: Any, maxsplit: int = 0) -> Any:
    string = _text(string)
    if not is_abstract(string):
        return pattern.split(string, maxsplit)
    if _shape(pattern, may_be_empty=False).n_groups:
        stop("re.split with groups", hint="write groups as (?: … ); or " + INTERPRET)
    return _computed("re_split", pattern, string, maxsplit, type_=types.list_of(types.TEXT))


def _sub(pattern: re.Pattern[str], repl: Any, string: Any, count: int = 0) -> Any:
    string = _text(string)
    if not is_abstract(string) and not is_abstract(repl):
        return pattern.sub(repl, string, count)
    if not isinstance(repl, str) or is_abstract(repl):
        stop(
            "re.sub with a replacement that is a function, or known only at run time",
            hint="write the replacement into the program, groups as \\1; or " + INTERPRET,
        )
    _shape(pattern, may_be_empty=False)
    try:
        template_pieces(repl, pattern.pattern, pattern.flags)
    except UnsupportedPattern as error:
        stop(error.message, error.hint)
    return _computed("re_sub", pattern, string, repl, count)


def _computed(fn: str, pattern: re.Pattern[str], *args: Any, **kwargs: Any) -> Any:
    session: Any = current_session()
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
    "finditer": _refused("finditer", "use re.findall and an index"),
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


def _compile(pattern: Any, flags: int = 0) -> SeeingPattern:
    return SeeingPattern(_pattern(pattern, flags))


def _escape(text: Any) -> Any:
    re.escape(stand_in(text))  # raises Python's own error for what is no text
    return computed(current_session(), "re_escape", text) if is_abstract(text) else re.escape(text)  # type: ignore[arg-type]


RE_FUNCTIONS: dict[str, Any] = {
    **{name: _of_module(name) for name in _METHODS},
    "compile": _compile,
    "escape": _escape,
}
