"""Where objects are references, so are dicts that may be changed while others hold them:

rows.append({"topic": t})      rows.append(row({"topic": t}))
rows.append({**x, "n": 1})     rows.append(merged((x,), ("n", 1)))
"""

from __future__ import annotations

import ast

from sgc.tracing.code.modules.rows import place_of_row
from sgc.tracing.code.operator_names import MERGED, ROW
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
        if None in node.keys:
            return _call(MERGED, node, *map(_part, node.keys, node.values))
        return _call(ROW, node, node)


def _part(key: ast.expr | None, value: ast.expr) -> ast.expr:
    """A key and its value; a dict alone for `**d`."""
    parts = [value] if key is None else [key, value]
    return ast.copy_location(ast.Tuple(parts, ast.Load()), value)


def _call(name: str, at: ast.expr, *args: ast.expr) -> ast.expr:
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, [*args], []), at)
