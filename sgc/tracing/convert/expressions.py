"""Rewrites expressions whose abstract operands Python would treat as plain text.

An f-string, `%`, `x in text` and a method of a plain text call none of the methods of a text that
is only known at run time: CPython joins, searches or cuts its marker. Here each becomes a call of
an operator (`sgc.tracing.operators`). Everything keeps its position, and nothing is evaluated in
another order or twice.
"""

from __future__ import annotations

import ast
from typing import TypeVar

TEXT, CALLEE, CONTAINS, MODULO, ASCII = (
    "__sgc_text__", "__sgc_callee__", "__sgc_contains__", "__sgc_modulo__", "__sgc_ascii__",
)  # fmt: skip
OPERATORS = frozenset({TEXT, CALLEE, CONTAINS, MODULO, ASCII})

_AS_ASCII = 97  # of `{x!a}`, in the tree

_Node = TypeVar("_Node", bound=ast.AST)


def convert(tree: ast.Module) -> ast.Module:
    """The tree with its expressions rewritten, in place."""
    converted: ast.Module = _Expressions().visit(tree)
    return converted


class _Expressions(ast.NodeTransformer):
    # -- what is evaluated -----------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        is_plain = not any(isinstance(value, ast.FormattedValue) for value in node.values)
        return node if is_plain else _call(TEXT, node, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self.visit(node.value)
        if node.conversion == _AS_ASCII:
            node.value, node.conversion = _call(ASCII, node.value, node.value), -1
        if isinstance(node.format_spec, ast.JoinedStr):
            self.generic_visit(node.format_spec)  # itself no text of the program's
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call(MODULO, node, node.left, node.right) if _is_modulo(node) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if not _is_modulo(node) or not isinstance(node.target, ast.Name):
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = _call(MODULO, node, before, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return node
        found = _call(CONTAINS, node, node.left, node.comparators[0])
        if isinstance(node.ops[0], ast.In):
            return found
        return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        node.func = _call(CALLEE, node.func, node.func)
        return _call(TEXT, node, node)

    def visit_withitem(self, node: ast.withitem) -> ast.withitem:
        if isinstance(node.context_expr, ast.Call):  # the language knows its blocks by it
            self.generic_visit(node.context_expr)
        else:
            node.context_expr = self.visit(node.context_expr)
        if node.optional_vars is not None:
            node.optional_vars = self.visit(node.optional_vars)
        return node

    # -- what is not evaluated here ----------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._definition(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return self._definition(node)

    def _definition(self, node: _Node) -> _Node:
        """All but decorators, annotations and type parameters."""
        for name in ("args", "bases", "keywords", "body"):
            found = getattr(node, name, None)
            if isinstance(found, list):
                setattr(node, name, [self.visit(item) for item in found])
            elif found is not None:
                self.visit(found)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def _is_modulo(node: ast.BinOp | ast.AugAssign) -> bool:
    return isinstance(node.op, ast.Mod)


def _call(name: str, at: ast.expr | ast.stmt, *args: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(args), []), at)
