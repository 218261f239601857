"""How long a text can be that a pattern of Python's `re` matches as a whole."""

from __future__ import annotations

import re
import warnings
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_WIDEST = 4  # bytes of a character in UTF-8
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_NO_WIDTH = frozenset({"AT", "ASSERT", "ASSERT_NOT"})


def longest(pattern: str) -> int | None:
    """The most bytes that such a text has; None where there is no bound, or none is found."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            tree = _parser.parse(pattern)
        return _sequence(tree, tree.state.flags)
    except (re.error, OverflowError, RecursionError):
        return None  # the pattern is another's to refuse


def _sequence(nodes: Any, flags: int) -> int | None:
    total = 0
    for op, value in nodes:
        width = _node(op.name, value, flags)
        if width is None:
            return None
        total += width
    return total


def _node(name: str, value: Any, flags: int) -> int | None:
    if name in _NO_WIDTH:
        return 0
    if name in ("LITERAL", "IN", "NOT_LITERAL", "ANY"):
        return _character(name, value, flags)
    if name in _REPEATS:
        _, most, body = value
        width = _sequence(body, flags)
        if width is None or (width and most == _parser.MAXREPEAT):
            return None
        return width * int(most) if width else 0
    if name == "BRANCH":
        arms = [_sequence(arm, flags) for arm in value[1]]
        known = [arm for arm in arms if arm is not None]
        return max(known) if len(known) == len(arms) else None
    if name == "SUBPATTERN":
        _, added, removed, body = value
        return _sequence(body, (flags | added) & ~removed)
    return _sequence(value, flags) if name == "ATOMIC_GROUP" else None


def _character(name: str, value: Any, flags: int) -> int:
    if flags & re.IGNORECASE or name in ("NOT_LITERAL", "ANY"):
        return _WIDEST  # `k` matches the sign for kelvin, too
    if name == "LITERAL":
        return _width(value)
    return max((_item(op.name, item) for op, item in value), default=_WIDEST)


def _item(name: str, value: Any) -> int:
    """Of one item of a class."""
    if name == "LITERAL":
        return _width(value)
    return _width(value[1]) if name == "RANGE" else _WIDEST


def _width(code: int) -> int:
    return len(chr(code).encode("utf-8", "surrogatepass"))
