"""Markers: how an abstract value travels inside a plain string.

Formatting an abstract value yields a marker. f-strings, `+`, `%`, `format` and `join` carry it to
where the string reaches a stream; there it becomes an operand again. Its delimiters are Unicode
noncharacters, which no text contains; between them are digits.

There are two styles, and a program is traced with both. Any operation that changes texts changes a
long marker: it is longer than most cuts, begins and ends with white space, and holds both cases,
punctuation and characters that normalization replaces. So an operation that no hook sees breaks the
long marker or makes the two graphs differ, and either is an error.
"""

from __future__ import annotations

import re
from enum import Enum, auto

OPEN, CLOSE = "\ufdd0", "\ufdd1"

_EDGE = "\u2003"  # `strip` removes it; ordinary texts do not contain it
_WORDS = "aB \t\n.,:;!?'\"()[]{}<>=+-*/\\|&%$#@^~`_ Z\u00e9e\u0301\ufb01\u00df yes no 0 "
_BODY = (_WORDS * 93)[:5000]
_NUMBER = re.compile("[0-9]*")
_LONG_END = _BODY + CLOSE + _EDGE


class Style(Enum):
    """How markers look."""

    SHORT = auto()
    LONG = auto()


def make_marker(number: int, style: Style = Style.SHORT) -> str:
    if style is Style.LONG:
        return f"{_EDGE}{OPEN}{number}{_LONG_END}"
    return f"{OPEN}{number}{CLOSE}"


def has_marker(text: str) -> bool:
    """Whether a text carries an abstract value, or a broken piece of one."""
    # `str`'s own method, because an abstract text refuses to be searched.
    return str.__contains__(text, OPEN) or str.__contains__(text, CLOSE)


def split_markers(text: str) -> list[str | int]:
    """Plain texts and the numbers of markers, in order; raises ValueError on a broken one."""
    pieces: list[str | int] = []
    at = 0
    while (opened := text.find(OPEN, at)) >= 0:
        found = _NUMBER.match(text, opened + 1)
        assert found is not None
        number, end = found.group(), found.end()
        if text.startswith(CLOSE, end):
            begin, end = opened, end + 1
        elif text.startswith(_LONG_END, end) and text[at:opened].endswith(_EDGE):
            begin, end = opened - 1, end + len(_LONG_END)
        else:
            number = ""
        if not number or text.find(CLOSE, at, begin) >= 0:
            raise ValueError("a marker was cut apart")
        if begin > at:
            pieces.append(text[at:begin])
        pieces.append(int(number))
        at = end
    if text.find(CLOSE, at) >= 0:
        raise ValueError("a marker was cut apart")
    if at < len(text):
        pieces.append(text[at:])
    return pieces
