"""The children of a node in the tree into which Python's own parser parses a pattern of `re`.

The parser is a private module of Python; the form of its trees has not changed since 3.11.
"""

from __future__ import annotations

from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def bodies(op: Any, value: Any, flags: int = 0) -> list[tuple[Any, int]]:
    """The sequences in a node, each with the flags that apply in it: the arms of a branch, the body
    of a repeat or group; empty for a character, set, position or reference."""
    if op is sre.BRANCH:
        return [(arm, flags) for arm in value[1]]
    if op in REPEATS:
        return [(value[2], flags)]
    if op is sre.SUBPATTERN:
        _, added, removed, body = value
        return [(body, (flags | added) & ~removed)]
    return [(value, flags)] if op is sre.ATOMIC_GROUP else []


def empty_is_last(tree: Any) -> bool:
    """Whether Python tries all other matches at a position before it takes the empty text."""
    return all(map(_is_last, tree))


def _is_last(node: tuple[Any, Any]) -> bool:
    op, value = node
    inner = [body for body, _ in bodies(op, value)]
    if all(body.getwidth()[0] > 0 for body in inner):
        return op is not sre.MIN_REPEAT or value[0] > 0
    if op is sre.BRANCH:
        *before, last = inner
        return all(body.getwidth()[0] > 0 for body in before) and empty_is_last(last)
    return op in (sre.SUBPATTERN, sre.ATOMIC_GROUP) and empty_is_last(inner[0])
