"""Decides whether code may mutate its arguments, by its statements and the names that it calls."""

from __future__ import annotations

import ast

from sgc.ir.code import Code

# Methods and functions, of any type, that mutate their arguments.
_NAMES = """
add append appendleft clear difference_update discard extend extendleft heapify heappop heappush
heappushpop heapreplace insert insort insort_left insort_right intersection_update move_to_end pop
popitem popleft remove reverse rotate setdefault shuffle sort subtract symmetric_difference_update
update writerow writerows
"""
_CHANGES = frozenset(_NAMES.split())


def may_change(code: Code) -> bool:
    """Whether code may mutate its arguments; False is certain, True is not."""
    changes = any(_changes(node) for part in code.body for node in ast.walk(part))
    return changes or any(_is_changing(found.item) for found in code.imports.values())


def _changes(node: ast.AST) -> bool:
    if isinstance(node, (ast.AugAssign, ast.Delete)):
        return True
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return True
    # Reading a defaultdict may add a key to it, but such arguments are always copied.
    return isinstance(node, ast.Attribute) and node.attr in _CHANGES


def _is_changing(name: str | None) -> bool:
    return name in _CHANGES
