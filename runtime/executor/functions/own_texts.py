"""Texts with special tokens that the program itself wrote.

In a text that is concatenated at run time, special tokens that the program wrote stay special, and
those in values are plain text. If a model has special tokens, a text with one that the program
wrote keeps its span. Any operation but concatenation drops the spans: its result is a plain value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sgc.ir.graph import Lit, Operand

Spans = tuple[tuple[int, int], ...]


class OwnText(str):
    """A text with the spans that the program wrote."""

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
    """The value of an operand, in which the program's literals with special tokens are marked."""
    if isinstance(operand, Lit):
        is_own = type(value) is str and special.search(value) is not None
        return OwnText(value, ((0, len(value)),)) if is_own else value
    if isinstance(operand, tuple):
        return [own(each, item, special) for each, item in zip(operand, value, strict=True)]
    return value


def has_own(value: Any) -> bool:
    """Whether a value holds a special token of the program's, which code would make plain text."""
    if isinstance(value, dict):
        return any(map(has_own, value.values()))
    return type(value) is OwnText or (isinstance(value, (list, tuple)) and any(map(has_own, value)))


def as_value(value: Any) -> Any:
    """The value without marks, as the program's caller sees it."""
    kind = type(value)
    if kind is OwnText:
        return str.__str__(value)
    if kind in (list, tuple):
        return kind(map(as_value, value))
    return {key: as_value(item) for key, item in value.items()} if kind is dict else value


def as_returned(value: Any) -> Any:
    """What a program returns: such a value, with a dict for each mapping, as interpreted."""
    if isinstance(value, list):
        return [as_returned(item) for item in value]
    if isinstance(value, tuple):
        return tuple(as_returned(item) for item in value)
    if isinstance(value, dict):
        return {as_value(key): as_returned(item) for key, item in value.items()}
    return as_value(value)


def put_together(parts: Sequence[str]) -> str:
    """Concatenates the texts, with the spans of the program's own."""
    text = "".join(parts)
    spans = tuple(_spans(parts))
    return OwnText(text, spans) if spans else text


def joined(separator: str, items: Iterable[str]) -> str:
    """`separator.join(items)`, with the spans of the program's own texts."""
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
