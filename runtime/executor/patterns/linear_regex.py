"""Python's patterns, matched in time linear in the text: pattern and text may be hostile.

Python's own parser reads a pattern, and Python's own matcher decides which characters each of its
sets holds. Characters that belong to the same sets become one byte, and RE2 matches the bytes. So
Unicode, case and word boundaries are Python's, and positions are those of the text. Where a short
lookaround holds is marked in the bytes (`regex_marks.py`). Patterns that a linear matcher cannot
match, or matches differently, raise UnsupportedPattern: backreferences, long lookaround, atomic
groups, repeats of a part that may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

from sgc.ir.regex_tree import REPEATS, bodies, empty_is_last
from sgc.runtime.executor.interface.value_limits import LimitExceeded, check_length
from sgc.runtime.executor.patterns.packages import needed
from sgc.runtime.executor.patterns.regex_classes import (
    NEWLINE,
    Node,
    UnsupportedPattern,
    translated,
)
from sgc.runtime.executor.patterns.regex_marks import Marked

Span = tuple[int, int] | None

MAX_WORK = 10**9  # characters read by one search for all matches


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a pattern. sure: the groups that take part in every match; outer: those that
    are in no other, from left to right; skips_none: whether all its matches in a text can be found,
    also those of the empty text."""

    n_groups: int
    names: dict[str, int]
    sure: frozenset[int]
    outer: tuple[int, ...]
    skips_none: bool


@lru_cache(maxsize=512)
def shape_of(pattern: str, flags: int = 0) -> Shape:
    """Returns the shape; raises re.error or UnsupportedPattern."""
    compiled = re.compile(pattern, flags)
    tree = translated(pattern, flags).tree
    return Shape(
        compiled.groups,
        dict(compiled.groupindex),
        frozenset({0, *_sure(tree)}),
        tuple(_outermost(tree)),
        tree.getwidth()[0] > 0 or empty_is_last(tree),
    )


class LinearPattern:
    """A compiled pattern. Spans are those of group 0 and each group; None if it took no part."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        made = translated(pattern, flags)
        self._bytes_of, self._ends_at_newline = made.bytes_of, made.ends_at_newline
        self._marks = made.marks
        last = b"" if made.marks is None else made.marks.any
        self._search = _re2(made.source)
        self._match = _re2(rb"\A(?:" + made.source + rb")")
        self._fullmatch = _re2(rb"\A(?:" + made.source + rb")" + last + rb"\z")

    def search(self, text: str) -> list[Span] | None:
        return self._spans(self._search, self._encoded(text))

    def match(self, text: str) -> list[Span] | None:
        return self._spans(self._match, self._encoded(text))

    def fullmatch(self, text: str) -> list[Span] | None:
        return self._spans(self._fullmatch, self._encoded(text))

    def all(self, text: str) -> Iterator[list[Span]]:
        """Matches from left to right that do not overlap. The pattern's shape must be one that
        skips none: after an empty match, none other begins there."""
        encoded = self._encoded(text)
        at, work = 0, 0
        while at <= len(text) and (found := self._spans(self._search, encoded, at)) is not None:
            yield found
            assert found[0] is not None
            start, end = found[0]
            at = end + (start == end)
            work += len(text) - at
            if work > MAX_WORK:
                raise LimitExceeded("a text is too long for all matches of a pattern in it")

    def _encoded(self, text: str) -> Marked:
        check_length(len(text))
        encoded = text.translate(self._bytes_of).encode("latin-1")
        if self._ends_at_newline and text.endswith("\n"):
            encoded = encoded[:-1] + bytes([NEWLINE])
        return _plain(encoded) if self._marks is None else self._marks.added_to(text, encoded)

    def _spans(self, compiled: Any, text: Marked, at: int = 0) -> list[Span] | None:
        match = compiled.search(text.encoded, text.offset(at))
        if match is None:
            return None
        spans = [match.span(group) for group in range(match.re.groups + 1)]
        return [
            None if start == -1 else (text.place(start), text.place(end)) for start, end in spans
        ]


def _plain(encoded: bytes) -> Marked:
    return Marked(encoded, (), (), ())


@lru_cache(maxsize=256)
def linear_pattern(pattern: str, flags: int = 0) -> LinearPattern:
    """Returns the compiled pattern; raises re.error or UnsupportedPattern."""
    return LinearPattern(pattern, flags)


def _re2(source: bytes) -> Any:
    re2 = needed("re2", "matching a pattern", package="google-re2")
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error as error:
        raise UnsupportedPattern(
            f"the pattern is too large: {error}", hint="repeat less, or use several patterns"
        ) from error


def _outermost(tree: Iterable[Node]) -> Iterator[int]:
    for op, arg in tree:
        if op is sre.SUBPATTERN and arg[0] is not None:
            yield arg[0]
        else:
            for body, _ in bodies(op, arg):
                yield from _outermost(body)


def _sure(tree: Iterable[Node]) -> set[int]:
    """The groups that take part in every match."""
    found: set[int] = set()
    for op, arg in tree:
        inner = [_sure(body) for body, _ in bodies(op, arg)]
        if inner and not (op in REPEATS and arg[0] == 0):
            found |= set.intersection(*inner)
        if op is sre.SUBPATTERN:
            found |= {arg[0]} - {None}
    return found
