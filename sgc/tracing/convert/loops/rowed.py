"""Where objects are references, so are dicts that may be changed while others hold them:

rows.append({"topic": t})      rows.append(row({"topic": t}))
"""

from __future__ import annotations

import ast

from sgc.tracing.code.operator_names import ROW
from sgc.tracing.code.rows import place_of_row
from sgc.tracing.convert.module_names import ModuleNames


def with_rows(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    return _Rowed(names.rows).visit(tree) if names.rows else tree  # type: ignore[no-any-return]


class _Rowed(ast.NodeTransformer):
    def __init__(self, rows: frozenset[tuple[int, int]]) -> None:
        self._rows = rows

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        self.generic_visit(node)
        if place_of_row(node) not in self._rows:
            return node
        function = ast.copy_location(ast.Name(ROW, ast.Load()), node)
        return ast.copy_location(ast.Call(function, [node], []), node)
