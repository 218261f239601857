"""Matches in abstract texts: a single match, a loop over matches, and matches to be replaced."""

from __future__ import annotations

import re
from typing import Any

from sgc.core.places import is_ours
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.runtime.executor.patterns.linear_regex import Shape
from sgc.tracing.values.abstract import OfTexts
from sgc.tracing.values.abstract_loops import Items, Loop
from sgc.tracing.values.computing import computed


class AbstractMatch(OfTexts):
    """A match in an abstract text."""

    __slots__ = ("_shape", "_spans", "re", "session", "string")

    def __init__(self, spans: Any, text: Any, pattern: Any, shape: Shape) -> None:
        """spans: the place of each group; pattern: the stand-in for the compiled pattern."""
        self._spans, self._shape = spans, shape
        self.string, self.re = text, pattern
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

    @property
    def lastindex(self) -> int | None:
        """The outer group that ended last, by a decision for each outer group."""
        outer, sure = self._shape.outer, self._shape.sure
        if not outer or outer[-1] in sure:  # the rightmost one
            return outer[-1] if outer else None
        last = self.session.coded(_LAST.format(outer=outer), (self._spans,), types.INT)
        is_any = bool(sure & {*outer})  # otherwise perhaps none took part
        rest = outer[-1] if is_any else None
        return next((n for n in outer if n != rest and last == n), rest)

    @property
    def lastgroup(self) -> str | None:
        last = self.lastindex
        return next((name for name, n in self._shape.names.items() if n == last), None)

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
                hint="use group, groups, groupdict, start, end, span, lastgroup and lastindex; or "
                + INTERPRET,
            )
        raise AttributeError(f"'re.Match' object has no attribute {name!r}")


class Found:
    """All matches of a pattern in an abstract text. most: how many at most; 0 for all."""

    def __init__(self, text: Any, pattern: Any, shape: Shape, most: Any = 0) -> None:
        self._text, self._pattern, self._shape = text, pattern, shape
        session: Any = current_session()
        of = types.list_of(types.list_of(types.JSON))
        code = _FINDING.format(pattern=pattern.pattern, flags=pattern.flags, n=shape.n_groups + 1)
        self._spans = session.coded(code, (text, most), of)

    def matches(self) -> Matches:
        """A loop over the matches."""
        return Matches(Items(self._spans), self._text, self._pattern, self._shape)

    def filled(self, texts: Any) -> Any:
        """The text with the matches replaced by other texts."""
        session: Any = current_session()
        return session.coded(_FILLING, (self._text, self._spans, texts), types.TEXT)


class Matches(Loop):
    """The loop over `finditer` of an abstract text."""

    made_by = "finditer"

    def __init__(self, loop: Items, text: Any, pattern: Any, shape: Shape) -> None:
        self._session, self._loop = loop._session, loop
        self._text, self._pattern, self._shape = text, pattern, shape

    @property
    def index(self) -> Any:
        return self._loop.index

    def __next__(self) -> AbstractMatch:
        return AbstractMatch(next(self._loop), self._text, self._pattern, self._shape)


_FINDING = """import re

def piece(text, most):
    found = []
    for m in re.compile({pattern!r}, {flags}).finditer(text):
        if most and len(found) >= most:
            break
        found.append([[*m.span(n)] if m.start(n) >= 0 else None for n in range({n})])
    return found"""
_LAST = """def piece(spans):
    last, at = 0, -1
    for n in {outer}:
        if spans[n] is not None and spans[n][1] >= at:
            last, at = n, spans[n][1]
    return last"""
# Joins the parts as Python does, so that the error for an item that is no text names its place.
_FILLING = """def piece(text, spans, texts):
    parts, at = [], 0
    for (whole, *_), made in zip(spans, texts):
        if at < whole[0]:
            parts.append(text[at:whole[0]])
        if made is not None:
            parts.append(made)
        at = whole[1]
    if at < len(text):
        parts.append(text[at:])
    return "".join(parts)"""
