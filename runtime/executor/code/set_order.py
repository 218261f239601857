"""The order in which Python iterates a set: that of its table, which depends on how it was made.

Equal sets may differ in their order: a table grows faster by `add` than by `|=`, and keeps the
places of removed items.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from sgc.runtime.executor.code.set_table import IS_READ, exact_copy


def merged(items: Iterable[Any]) -> set[Any]:
    """The set that Python makes of a display of at least three constants: it adds a frozenset."""
    made: set[Any] = set()
    made.update(frozenset(tuple(items)))
    return made


def copied_set(value: set[Any], items: Sequence[Any] | None = None) -> tuple[set[Any], bool]:
    """A copy of a set, and whether it has the set's order, now and after the same changes.

    items: the items of the copy, in the order of the set's items; None for the same items.
    """
    found = exact_copy(value, items)
    if found is not None:
        return found, True
    made = value.copy() if items is None else set(items)
    return made, not IS_READ and len(made) == len(value)


def is_constant(node: ast.expr) -> bool:
    """Whether Python's compiler makes a constant of an item of a display."""
    if isinstance(node, ast.Tuple):
        return all(map(is_constant, node.elts))
    if isinstance(node, ast.BinOp):
        return is_constant(node.left) and is_constant(node.right)
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
