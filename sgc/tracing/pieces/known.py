"""The parts of a statement or expression that are computed only from a library's objects, which are
known while tracing but are not data: `set(data) - set(signature.parameters)` is code if
`set(signature.parameters)` is evaluated before it."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Collection, Mapping
from random import Random
from types import MappingProxyType, ModuleType
from typing import Any

from sgc.tracing.code.trees import surely
from sgc.tracing.pieces.text.constants import FIXED
from sgc.tracing.values.abstract import is_abstract

# Functions that only compute a result from their arguments.
MAKING = frozenset({"dict", "frozenset", "len", "list", "set", "sorted", "str", "tuple"})
_VIEWS = frozenset({"items", "keys", "values"})
_DATA = (list, tuple, dict, set, frozenset, deque, type, ModuleType, Random, *FIXED)


def known_objects(node: ast.AST, *names: Mapping[str, Any]) -> frozenset[str]:
    """The names in an expression or statement that refer to a library's objects. names: the
    function's variables and its globals."""
    read = {each.value.id for each in ast.walk(node) if _is_attribute(each)}  # type: ignore[attr-defined]
    read |= {each.args[0].id for each in ast.walk(node) if _is_making(each)}  # type: ignore[attr-defined]
    return frozenset(
        name
        for name in read
        if _is_object(next((each[name] for each in names if name in each), None))
    )


def known_parts(node: ast.AST, objects: Collection[str], own: Collection[str]) -> list[ast.expr]:
    """The largest parts that are computed only from such objects and are evaluated whenever the
    node is. own: names of Python's functions that the program rebinds."""
    found: list[ast.expr] = []
    left = [*surely(node)] if objects else []
    inside: set[int] = set()
    for each in left:
        if id(each) in inside or isinstance(each, ast.Name) or not isinstance(each, ast.expr):
            continue
        if _is_known(each, objects, own):
            found.append(each)
            inside |= {id(part) for part in ast.walk(each)}
    return found


def _is_known(node: ast.AST, objects: Collection[str], own: Collection[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in objects
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and _is_known(node.value, objects, own)
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _VIEWS:
        return not node.args and _is_known(function.value, objects, own)
    is_making = isinstance(function, ast.Name) and function.id in MAKING - {*own}
    return is_making and len(node.args) == 1 and _is_known(node.args[0], objects, own)


def _is_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _is_making(node: ast.AST) -> bool:
    is_one = isinstance(node, ast.Call) and len(node.args) == 1
    return is_one and isinstance(node.args[0], ast.Name)  # type: ignore[attr-defined]


def _is_object(value: Any) -> bool:
    """Whether a value is an object of Python's own libraries, neither data nor an iterator."""
    kind = type(value)
    if kind is MappingProxyType:
        return True
    root = kind.__module__.partition(".")[0]
    if is_abstract(value) or root == "builtins" or root not in sys.stdlib_module_names:
        return False
    return not issubclass(kind, _DATA) and not hasattr(kind, "__next__")
