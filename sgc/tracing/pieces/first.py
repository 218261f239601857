"""The comprehensions that an expression or statement evaluates before anything that may fail or
have effects: they can be evaluated first, so that the rest may become code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sgc.tracing.code.using_up import USES_UP

_SCOPES = (
    ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Yield,
    ast.YieldFrom, ast.NamedExpr,
)  # fmt: skip


def comprehensions_first(node: ast.AST) -> list[ast.expr]:
    """The list comprehensions among these, and generator expressions that are used up at once."""
    if isinstance(node, ast.Assign):
        is_plain = all(isinstance(each, ast.Name) for each in _targets(node))
        node = node.value if is_plain else node
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name):
        node = node.value or node
    elif isinstance(node, ast.Expr):
        node = node.value
    if not isinstance(node, ast.expr) or isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return []
    found = _First()
    found.goes_on(node)
    return found.made


def _targets(node: ast.Assign) -> Iterable[ast.expr]:
    for each in node.targets:
        yield from each.elts if isinstance(each, ast.Tuple) else [each]


class _First:
    def __init__(self) -> None:
        self.made: list[ast.expr] = []

    def goes_on(self, node: ast.expr) -> bool:
        """Notes what an expression evaluates first; returns whether the next expression counts as
        first too, since this one can neither fail nor have effects."""
        if isinstance(node, (ast.Name, ast.Constant)):
            return True
        if isinstance(node, ast.Attribute):
            return self.goes_on(node.value)
        if isinstance(node, ast.ListComp):
            return self._take(node)
        if isinstance(node, ast.Call):
            self._call(node)
            return False
        if isinstance(node, (ast.List, ast.Tuple)):
            return all(map(self.goes_on, node.elts))
        first = next(_parts(node), None)
        if first is not None:
            self.goes_on(first)
        return False

    def _call(self, node: ast.Call) -> None:
        if not self.goes_on(node.func):
            return
        for arg in node.args:
            is_used_up = isinstance(arg, ast.GeneratorExp) and _name_of(node.func) in USES_UP
            if not (self._take(arg) if is_used_up else self.goes_on(arg)):
                return
        all(self.goes_on(each.value) for each in node.keywords)

    def _take(self, node: ast.expr) -> bool:
        parts = [each for each in ast.walk(node) if each is not node]
        if any(isinstance(each, _SCOPES) for each in parts):
            return False
        self.made.append(node)
        return True


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The part of an expression that it evaluates first, if it always does."""
    if isinstance(node, (ast.BinOp, ast.Compare)):
        yield node.left
    elif isinstance(node, ast.BoolOp):
        yield node.values[0]
    elif isinstance(node, ast.IfExp):
        yield node.test
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, (ast.Subscript, ast.FormattedValue, ast.Starred)):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (each for each in node.values if isinstance(each, ast.FormattedValue))


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
