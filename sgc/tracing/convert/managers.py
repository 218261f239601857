"""Names the context managers of `with` blocks, so that what a block does with an error, and what a
manager holds while its block runs, can be read: a frame's stack cannot.
"""

from __future__ import annotations

import ast

from sgc.tracing.code.operator_names import MANAGER, OWN_WITHS


def with_managers(tree: ast.Module) -> ast.Module:
    """Rewrites `with x as y:` in functions as `with (name := x) as y:`, in place; blocks of the
    language, whose state is known, stay."""
    return _Managers().visit(tree)  # type: ignore[no-any-return]


class _Managers(ast.NodeTransformer):
    def __init__(self) -> None:
        self._depth: int | None = None  # of blocks in a function; None outside of functions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._inside(node, 0)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._inside(node, 0)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return self._inside(node, None)

    def _inside(self, node: ast.stmt, depth: int | None) -> ast.stmt:
        before, self._depth = self._depth, depth
        self.generic_visit(node)
        self._depth = before
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        before = self._depth
        for item in node.items:
            self._name(item)
        self.generic_visit(node)
        self._depth = before
        return node

    def _name(self, item: ast.withitem) -> None:
        of = item.context_expr
        if self._depth is None or is_own(of):
            return
        name = ast.Name(f"{MANAGER}{self._depth}__", ast.Store())
        item.context_expr = ast.NamedExpr(ast.copy_location(name, of), of)
        ast.copy_location(item.context_expr, of)
        self._depth += 1


def is_own(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    name = getattr(function, "attr", getattr(function, "id", ""))
    return name in OWN_WITHS
