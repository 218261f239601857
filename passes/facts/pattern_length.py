"""The most bytes of a text that a pattern of Python's `re` matches as a whole."""

from __future__ import annotations

import re
import warnings
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from sgc.ir.regex_tree import REPEATS, bodies

_WIDEST = 4  # bytes of a character in UTF-8
_NO_WIDTH = frozenset({"AT", "ASSERT", "ASSERT_NOT"})


def longest(pattern: str) -> int | None:
    """The most bytes of a matching text; None if there is no bound, or none is found."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            tree = _parser.parse(pattern)
        return _sequence(tree, tree.state.flags)
    except (re.error, OverflowError, RecursionError):
        return None  # another check refuses such a pattern


def _sequence(nodes: Any, flags: int) -> int | None:
    total = 0
    for op, value in nodes:
        width = _node(op, value, flags)
        if width is None:
            return None
        total += width
    return total


def _node(op: Any, value: Any, flags: int) -> int | None:
    if op.name in _NO_WIDTH:
        return 0
    if op.name in ("LITERAL", "IN", "NOT_LITERAL", "ANY"):
        return _character(op.name, value, flags)
    inner = [_sequence(body, within) for body, within in bodies(op, value, flags)]
    known = [width for width in inner if width is not None]
    if not known or len(known) < len(inner):
        return None
    widest = max(known)
    if widest == 0 or op not in REPEATS:
        return widest
    most = value[1]
    return None if most == _parser.MAXREPEAT else widest * int(most)


def _character(name: str, value: Any, flags: int) -> int:
    if flags & re.IGNORECASE or name in ("NOT_LITERAL", "ANY"):
        return _WIDEST  # `k` also matches the kelvin sign
    if name == "LITERAL":
        return _width(value)
    return max((_item(op.name, item) for op, item in value), default=_WIDEST)


def _item(name: str, value: Any) -> int:
    """The most bytes of one item of a class."""
    if name == "LITERAL":
        return _width(value)
    return _width(value[1]) if name == "RANGE" else _WIDEST


def _width(code: int) -> int:
    return len(chr(code).encode("utf-8", "surrogatepass"))
