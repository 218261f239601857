"""Rewrites `max`, `min` and `sorted` with a key, and `sort`, so that the key is called in a loop.

    best = max(xs, key=lambda x: x.n)      best = chosen("max", [(x.n, x) for x in xs])

`comprehensions.py` makes a loop of that. It is done where objects are references, which code that
is data cannot look into.
"""

from __future__ import annotations

import ast
from typing import TypeVar

from sgc.tracing.code.operator_names import CHOSEN
from sgc.tracing.convert.looping import SCOPES
from sgc.tracing.convert.module_names import ModuleNames

_NAMES = frozenset({"max", "min", "sorted"})
_KEYWORDS = {"max": {"key", "default"}, "min": {"key", "default"}, "sorted": {"key", "reverse"}}
_ITEM = "__sgc_keyed_item__"
_Node = TypeVar("_Node", bound=ast.AST)


def with_keyed(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    if "*" in names.bound:
        return tree
    return _Keyed(_NAMES - names.bound).visit(tree)  # type: ignore[no-any-return]


class _Keyed(ast.NodeTransformer):
    """own: of the names, those that are Python's."""

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in self._own or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
            return node
        return _chosen(node, name, node.args[0], _KEYWORDS[name]) or node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.generic_visit(node)
        call = node.value
        method = call.func if isinstance(call, ast.Call) else None
        if not isinstance(method, ast.Attribute) or method.attr != "sort" or call.args:  # type: ignore[attr-defined]
            return node
        of = method.value
        if not isinstance(of.value if isinstance(of, ast.Attribute) else of, ast.Name):
            return node
        assert isinstance(call, ast.Call)
        node.value = _chosen(call, "sort", of, {"key", "reverse"}, of) or call
        return node


def _chosen(
    node: ast.Call, name: str, items: ast.expr, keywords: set[str], *more: ast.expr
) -> ast.expr | None:
    given = {each.arg: each.value for each in node.keywords}
    key = given.pop("key", None)
    if key is None or not {*given} <= keywords:
        return None
    if isinstance(key, ast.Lambda):
        arguments = key.args
        is_one = len(arguments.args) == 1 and not arguments.defaults and not arguments.kwonlyargs
        is_one = is_one and not (arguments.vararg or arguments.kwarg or arguments.posonlyargs)
        if not is_one or any(isinstance(each, SCOPES) for each in ast.walk(key.body)):
            return None
        item, value = arguments.args[0].arg, key.body
    elif isinstance(key, ast.Name):
        item = _ITEM
        value = _at(ast.Call(key, [_at(ast.Name(item, ast.Load()), key)], []), key)
    else:
        return None
    pair = _at(ast.Tuple([value, _at(ast.Name(item, ast.Load()), key)], ast.Load()), key)
    over = ast.comprehension(_at(ast.Name(item, ast.Store()), key), items, [], 0)
    pairs = _at(ast.ListComp(pair, [over]), node)
    args = [_at(ast.Constant(name), node), pairs, *more]
    rest = [_at(ast.keyword(key, value), value) for key, value in given.items()]
    return _at(ast.Call(_at(ast.Name(CHOSEN, ast.Load()), node), args, rest), node)


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)  # type: ignore[type-var]
