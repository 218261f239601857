"""Sets of texts that a module makes once by adding text after text: `STOP = {"a", "the"}`, or
`set(["a", "the", "of"])`.

In each process, the order of such a set follows from the order in which the texts are added. So
code that adds them in the same order has the set in the same order as an interpreted run. A longer
display is a constant of the module, whose order differs if Python has read it from a `.pyc`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from sgc.tracing.code.trees import tree_of

_CHANGING = frozenset({
    "__iand__", "__ior__", "__isub__", "__ixor__", "add", "clear", "difference_update", "discard",
    "intersection_update", "pop", "remove", "symmetric_difference_update", "update",
})  # fmt: skip


def written_alike(name: str, value: Any, names: Mapping[str, Any]) -> str:
    """An expression for a module variable's set of texts that makes the set with the same order as
    the module's; empty if none is known. names: the module's globals."""
    if type(value) not in (set, frozenset) or not all(type(item) is str for item in value):
        return ""
    items, form = _way(_assigned(name, names.get("__file__")), names)
    if not items:
        return ""
    made = set(items) if type(value) is set else frozenset(items)
    return form.format(", ".join(map(repr, items))) if _is_alike(made, value) else ""


def _is_alike(made: Any, value: Any) -> bool:
    return list(made) == list(value) and sys.getsizeof(made) == sys.getsizeof(value)


def _assigned(name: str, file: object) -> ast.expr | None:
    """The value that a module assigns to a variable, if it changes the variable nowhere else."""
    tree = tree_of(file) if isinstance(file, str) else None
    if tree is None or any(_may_change(each, name) for each in ast.walk(tree.module)):
        return None
    binding = [each for each in _outside_functions(tree.module) if _binds(each, name)]
    for each in tree.module.body:
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and binding == [_target(each)]:
            return each.value
    return None


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module outside of its functions and classes."""
    for each in ast.iter_child_nodes(node):
        yield each
        if not isinstance(each, _SCOPES):
            yield from _outside_functions(each)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _target(node: ast.Assign | ast.AnnAssign) -> ast.expr | None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0] if len(targets) == 1 else None


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node sets or deletes a variable."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return node.name == "*" or (node.asname or node.name.partition(".")[0]) == name
    is_named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    is_named = is_named or isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar))
    return is_named and getattr(node, "name", None) == name


def _may_change(node: ast.AST, name: str) -> bool:
    """Whether a node calls a method that changes the variable's set, or sets it in a function."""
    if isinstance(node, ast.Global):
        return name in node.names
    if not isinstance(node, ast.Attribute) or node.attr not in _CHANGING:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == name


def _way(node: ast.expr | None, names: Mapping[str, Any]) -> tuple[list[str], str]:
    """The texts that an expression adds to a set in their order, and a format string for such an
    expression; empty if the expression makes no set in this way."""
    if isinstance(node, ast.Set):
        return _texts(node), "{{{}}}"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return [], ""
    kind = node.func.id
    if kind not in ("set", "frozenset") or kind in names or node.keywords or len(node.args) != 1:
        return [], ""
    form = "{}({{{{{{}}}}}})" if isinstance(node.args[0], ast.Set) else "{}([{{}}])"
    return _texts(node.args[0]), form.format(kind)


def _texts(node: ast.expr) -> list[str]:
    """The texts of a display. Empty if the display has other items or a text twice, or if Python
    makes it a constant, whose order only Python's compiler knows."""
    is_constant = isinstance(node, ast.Set) and len(node.elts) > 2
    if is_constant or not isinstance(node, (ast.Set, ast.List, ast.Tuple)):
        return []
    found = [
        each.value for each in node.elts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]  # fmt: skip
    return found if len({*found}) == len(node.elts) else []
