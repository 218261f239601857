"""The order in which Python goes over a set: that of its table, which follows from how it was made.

Equal sets may differ in it: a table grows faster by `add` than by `|=`, and keeps the places of
items that were removed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from typing import Any


def merged(items: Iterable[Any]) -> set[Any]:
    """The set that Python makes of a display of at least three constants: it adds a frozenset."""
    made: set[Any] = set()
    made.update(frozenset(tuple(items)))
    return made


def copied_set(value: set[Any]) -> tuple[set[Any], bool]:
    """A copy of a set, and whether it has the set's order: the first that has it of those that
    several ways give, best with a table as large."""
    wanted, size = list(value), sys.getsizeof(value)
    ways: tuple[Callable[[], set[Any]], ...] = (
        value.copy, lambda: set(wanted), lambda: merged(wanted),
    )  # fmt: skip
    found: set[Any] | None = None
    for way in ways:
        made = way()
        is_same = list(made) == wanted
        if is_same and sys.getsizeof(made) == size:
            return made, True
        found = made if is_same and found is None else found
    return (value.copy(), False) if found is None else (found, True)


def is_constant(node: ast.expr) -> bool:
    """Whether Python's compiler makes a constant of an item of a display."""
    if isinstance(node, ast.Tuple):
        return all(map(is_constant, node.elts))
    if isinstance(node, ast.BinOp):
        return is_constant(node.left) and is_constant(node.right)
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
