"""Markers: how an abstract value travels inside a plain string.

Formatting an abstract value yields a marker, so that f-strings, `+`, `%`, `format` and
`join` carry it to where the string reaches a stream, and there it becomes an operand
again. Its core is digits, so that no change of case makes another marker of it; its
delimiters are noncharacters of Unicode, which no text contains.
"""

from __future__ import annotations

import re

OPEN, CLOSE = "\ufdd0", "\ufdd1"

_MARKER = re.compile(f"{OPEN}([0-9]+){CLOSE}")


def make_marker(number: int) -> str:
    return f"{OPEN}{number}{CLOSE}"


def has_marker(text: str) -> bool:
    """Whether a text carries an abstract value, or a broken piece of one."""
    # Asked of `str` itself: an abstract text refuses to be searched.
    return str.__contains__(text, OPEN) or str.__contains__(text, CLOSE)


def split_markers(text: str) -> list[str | int]:
    """Plain texts and the numbers of markers, in order; raises ValueError on a broken one."""
    pieces: list[str | int] = []
    for index, part in enumerate(_MARKER.split(text)):
        if index % 2:
            pieces.append(int(part))
        elif has_marker(part):
            raise ValueError("a marker was cut apart")
        elif part:
            pieces.append(part)
    return pieces
