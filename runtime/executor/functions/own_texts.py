"""Texts that the program itself has put special tokens into.

In a text that is put together at run time, special tokens of the program's own mean what they say,
and those of values do not. Where a model has special tokens, a text that holds one of the
program's own remembers where; what else is done to it than joining makes it a value as any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sgc.ir.graph import Lit, Operand

Spans = tuple[tuple[int, int], ...]


class OwnText(str):
    """A text with the spans that are the program's own."""

    __slots__ = ("spans",)
    spans: Spans

    def __new__(cls, text: str, spans: Spans) -> OwnText:
        made = super().__new__(cls, text)
        made.spans = spans
        return made

    def parts(self) -> Iterator[tuple[bool, str]]:
        """The text in parts: the program's own (True), and values."""
        end = 0
        for start, stop in self.spans:
            if start > end:
                yield False, self[end:start]
            yield True, self[start:stop]
            end = stop
        if end < len(self):
            yield False, self[end:]


def own(operand: Operand, value: Any, special: re.Pattern[str]) -> Any:
    """The value of an operand; of one that is written in the program, marked as its own."""
    if isinstance(operand, Lit):
        is_own = type(value) is str and special.search(value) is not None
        return OwnText(value, ((0, len(value)),)) if is_own else value
    if isinstance(operand, tuple):
        return [own(each, item, special) for each, item in zip(operand, value, strict=True)]
    return value


def as_value(value: Any) -> Any:
    """What others are handed: a value as any other."""
    kind = type(value)
    if kind is OwnText:
        return str.__str__(value)
    if kind in (list, tuple):
        return kind(map(as_value, value))
    return {key: as_value(item) for key, item in value.items()} if kind is dict else value


def put_together(parts: Sequence[str]) -> str:
    """The texts as one, with what is the program's own in it."""
    text = "".join(parts)
    spans = tuple(_spans(parts))
    return OwnText(text, spans) if spans else text


def joined(separator: str, items: Iterable[str]) -> str:
    """`separator.join(items)`."""
    parts: list[str] = []
    for item in items:
        parts += [separator, item] if parts else [item]
    return put_together(parts)


def _spans(parts: Sequence[str]) -> Iterator[tuple[int, int]]:
    at = 0
    for part in parts:
        if type(part) is OwnText:
            yield from ((at + start, at + end) for start, end in part.spans)
        at += len(part)
