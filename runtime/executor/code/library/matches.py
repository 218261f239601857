"""Patterns and matches with the interface of `re`, on the linear matcher."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sgc.ir.regex_tree import bodies
from sgc.runtime.executor.code.fuel import charge, current
from sgc.runtime.executor.interface.value_limits import LimitExceeded, check_length
from sgc.runtime.executor.patterns.linear_regex import Span, linear_pattern, shape_of
from sgc.runtime.executor.patterns.regex_classes import UnsupportedPattern, translated

MAX_PATTERN = 2000  # characters
# Finding the characters of a set tests every character of Unicode.
_SET_COST = 50_000


class Pattern:
    """A compiled pattern of a graph's code."""

    __slots__ = ("_outer", "_size", "flags", "given_flags", "groupindex", "groups", "pattern")

    def __init__(self, pattern: str, flags: int) -> None:
        _pay(pattern, flags)
        shape = shape_of(pattern, flags)
        self.pattern, self.given_flags = pattern, flags
        self.groups = shape.n_groups
        self.groupindex = dict(shape.names)
        self._outer = shape.outer
        self.flags, self._size = _facts(pattern, flags)
        linear_pattern(pattern, flags)

    def one(self, name: str, string: Any) -> Match | None:
        """The match of `search`, `match` or `fullmatch`."""
        self._pay_search(string, 0)
        spans = getattr(linear_pattern(self.pattern, self.given_flags), name)(string)
        return None if spans is None else Match(self, string, spans)

    def all(self, string: Any) -> Iterator[Match]:
        """All matches from left to right."""
        if not shape_of(self.pattern, self.given_flags).skips_none:
            raise UnsupportedPattern(
                "the pattern may match the empty text before others that begin there",
                hint="use + in place of *?, or write the empty alternative last",
            )
        self._pay_search(string, 0)
        for spans in linear_pattern(self.pattern, self.given_flags).all(string):
            yield Match(self, string, spans)
            self._pay_search(string, whole(spans)[1])

    def _pay_search(self, string: Any, at: int) -> None:
        if not isinstance(string, str):
            raise TypeError(f"expected string or bytes-like object, got {type(string).__name__!r}")
        check_length(len(string))
        charge(4 + ((len(string) - at) * self._size >> 9))

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return (self.pattern, self.flags) == (other.pattern, other.flags)

    def __hash__(self) -> int:
        return hash((self.pattern, self.flags))

    def __repr__(self) -> str:
        return repr(re.compile(self.pattern, self.given_flags))


def _pay(pattern: str, flags: int) -> None:
    """Charges for compiling a pattern, once per run."""
    if len(pattern) > MAX_PATTERN:
        raise LimitExceeded(
            f"a pattern has {len(pattern)} characters; {MAX_PATTERN} are allowed",
            hint="use several patterns",
        )
    seen = current().patterns
    if (pattern, flags) in seen:
        charge(2)
        return
    charge(200 + 20 * len(pattern))
    n_sets = len(_SETS.findall(pattern))
    if flags & re.IGNORECASE or _IGNORES.search(pattern):
        n_sets += len({*pattern})  # each character is a set, once
    charge(_SET_COST * min(n_sets, 200))
    seen.add((pattern, flags))


_SETS = re.compile(r"\[|\\[dDsSwWbB]|\.")
_IGNORES = re.compile(r"\(\?[a-zA-Z]*i")


@lru_cache(maxsize=512)
def _facts(pattern: str, flags: int) -> tuple[int, int]:
    """The flags, and the size of the matcher."""
    tree = translated(pattern, flags).tree
    return re.compile(pattern, flags).flags, max(8, _size(tree))


def _size(tree: Any) -> int:
    """The number of positions in a pattern with its repeats expanded."""
    total = 0
    for op, arg in tree:
        inner = sum(_size(body) for body, _ in bodies(op, arg))
        if str(op).endswith("REPEAT"):
            low, high = arg[0], arg[1]
            inner *= max(1, low if high > 1000 else high)
        total += max(inner, 1)
    return total


def whole(spans: list[Span]) -> tuple[int, int]:
    assert spans[0] is not None
    return spans[0]


class Match:
    """A match of a graph's code."""

    __slots__ = ("_spans", "re", "string")

    def __init__(self, pattern: Pattern, string: str, spans: list[Span]) -> None:
        self.re, self.string, self._spans = pattern, string, spans
        charge(4 + len(spans))

    @property
    def pos(self) -> int:
        return 0

    @property
    def endpos(self) -> int:
        return len(self.string)

    def _span(self, group: Any) -> Span:
        number = group
        if isinstance(group, str):
            number = self.re.groupindex.get(group, -1)
        if not isinstance(number, int) or not 0 <= number < len(self._spans):
            raise IndexError("no such group")
        return self._spans[number]

    def _cut(self, group: Any, default: Any = None) -> Any:
        span = self._span(group)
        return default if span is None else self.string[span[0] : span[1]]

    def group(self, *groups: Any) -> Any:
        if len(groups) > 1:
            return tuple([self._cut(group) for group in groups])
        return self._cut(groups[0] if groups else 0)

    def __getitem__(self, group: Any) -> Any:
        return self._cut(group)

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        return tuple([self._cut(n, default) for n in range(1, len(self._spans))])

    def groupdict(self, default: Any = None) -> dict[str, Any]:
        return {name: self._cut(n, default) for name, n in self.re.groupindex.items()}

    def span(self, group: Any = 0) -> tuple[int, int]:
        return self._span(group) or (-1, -1)

    def start(self, group: Any = 0) -> int:
        return self.span(group)[0]

    def end(self, group: Any = 0) -> int:
        return self.span(group)[1]

    @property
    def lastindex(self) -> int | None:
        """The outer group, one inside no other group, that ended last."""
        ends = [(span[1], n) for n in self.re._outer if (span := self._spans[n]) is not None]
        return max(ends)[1] if ends else None

    @property
    def lastgroup(self) -> str | None:
        last = self.lastindex
        return next((name for name, n in self.re.groupindex.items() if n == last), None)

    def __repr__(self) -> str:
        return f"<re.Match object; span={self.span()!r}, match={self.group()!r}>"
