"""Rewrites `max`, `min` and `sorted` with a key, and `sort`, so that the key is called in a loop.

    best = max(xs, key=lambda x: x.n)      best = chosen("max", list((x.n, x) for x in xs), key=…)

`comprehensions.py` makes a loop of that. It is done where objects are references, which code that
is data cannot look into. The key stays, unused, so that each function of the source has its code.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from sgc.tracing.code.operator_names import CHOSEN
from sgc.tracing.convert.loops.looping import SCOPES
from sgc.tracing.convert.loops.mapped import ITEM
from sgc.tracing.convert.module_names import ModuleNames

_NAMES = frozenset({"max", "min", "sorted"})
_KEYWORDS = {"max": {"key", "default"}, "min": {"key", "default"}, "sorted": {"key", "reverse"}}
_ITEM = f"{ITEM}keyed__"
_Node = TypeVar("_Node", bound=ast.AST)


def with_keyed(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    if {"*", "list"} & names.bound:
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
        node.value = _chosen(call, "sort", of, {"key", "reverse"}, copy.deepcopy(of)) or call
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
        value = _Renamed(arguments.args[0].arg).visit(copy.deepcopy(key.body))
    elif _is_dotted(key):
        value = _at(ast.Call(copy.deepcopy(key), [_at(ast.Name(_ITEM, ast.Load()), key)], []), key)
    else:
        return None
    pair = _at(ast.Tuple([value, _at(ast.Name(_ITEM, ast.Load()), key)], ast.Load()), key)
    over = ast.comprehension(_at(ast.Name(_ITEM, ast.Store()), key), items, [], 0)
    made = _at(ast.GeneratorExp(pair, [over]), node)
    pairs = _at(ast.Call(_at(ast.Name("list", ast.Load()), node), [made], []), node)
    given["key"] = key
    args = [_at(ast.Constant(name), node), pairs, *more]
    rest = [_at(ast.keyword(key, value), value) for key, value in given.items()]
    return _at(ast.Call(_at(ast.Name(CHOSEN, ast.Load()), node), args, rest), node)


def _is_dotted(key: ast.expr) -> bool:
    """Whether an expression is a name, or attributes of one."""
    return isinstance(key, ast.Name) or (isinstance(key, ast.Attribute) and _is_dotted(key.value))


class _Renamed(ast.NodeTransformer):
    """Renames a lambda's parameter in its body, which has no scopes of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return _at(ast.Name(_ITEM, node.ctx), node) if node.id == self._name else node


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)  # type: ignore[type-var]
