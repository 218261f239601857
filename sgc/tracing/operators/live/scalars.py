"""Pieces of texts and whole numbers that are traced as they are: nodes of the graph tell more than
code, such as how long a prompt can be, and which arm of a test can be reached.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from sgc.ir import types
from sgc.tracing.values.abstract import AbstractNumber, AbstractText


def is_traced(node: ast.AST, given: Mapping[str, Any]) -> bool:
    """Whether a piece is an f-string, a sum of texts, a comparison or another name of such values,
    without calls and formats: `f"{n}. {text}"`, `x == "yes"`, `draft = text`."""
    return all(map(_is_scalar, given.values())) and _is_simple(node)


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    if issubclass(kind, AbstractNumber):
        return bool(value.symbol.type == types.INT)
    return kind in (str, int) or issubclass(kind, AbstractText)


def _is_simple(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and (
            isinstance(node.value, ast.Name) or _is_simple(node.value)
        )  # fmt: skip
    if isinstance(node, ast.Compare):
        is_equal = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        return is_equal and all(map(_is_leaf, (node.left, *node.comparators)))
    return isinstance(node, (ast.JoinedStr, ast.BinOp)) and _is_text(node)


def _is_text(node: ast.AST) -> bool:
    """Whether an expression is surely a text, if its names are texts or numbers."""
    if isinstance(node, ast.JoinedStr):
        return all(isinstance(each, ast.Constant) or _is_shown(each) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = (node.left, node.right)
        return any(map(_is_text, parts)) and all(_is_text(e) or _is_leaf(e) for e in parts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_shown(node: ast.AST) -> bool:
    if not isinstance(node, ast.FormattedValue) or node.conversion != -1:
        return False
    return node.format_spec is None and isinstance(node.value, ast.Name)


def _is_leaf(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Constant) and type(node.value) in (str, int)
    )
