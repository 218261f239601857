"""Whether code may change its arguments, by the names of what it calls."""

from __future__ import annotations

import ast

from sgc.ir.code import Code

# Methods and functions that change what they are given, of any type.
_NAMES = """
add append appendleft clear difference_update discard extend extendleft heapify heappop heappush
heappushpop heapreplace insert insort insort_left insort_right intersection_update move_to_end pop
popitem popleft remove reverse rotate setdefault shuffle sort subtract symmetric_difference_update
update writerow writerows
"""
_CHANGES = frozenset(_NAMES.split())


def may_change(code: Code) -> bool:
    """Whether code may change a value that it did not make, or give it back changed."""
    changes = any(_changes(node) for part in code.body for node in ast.walk(part))
    return changes or any(_is_changing(found.item) for found in code.imports.values())


def _changes(node: ast.AST) -> bool:
    if isinstance(node, (ast.AugAssign, ast.Delete)):
        return True
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return True
    # Reading a defaultdict adds to it; such an argument is always copied.
    return isinstance(node, ast.Attribute) and node.attr in _CHANGES


def _is_changing(name: str | None) -> bool:
    return name in _CHANGES
