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
