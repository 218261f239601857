"""Rewrites orders by a function that asks a model, where data are live objects.

    max(xs, key=f)          by_keys("max", items := xs, key=(of := f),
                                    each=(each := asked("max", items, of)),
                                    keys=list(of(x) for x in each) if given(each) else None)

`asked` gives the items if the call cannot become code, as where `f` asks: then all keys are found
first, in a loop, as `sorted` and `xs.sort` find them. `max` and `min` of Python compare each key
before the next is found: only where two keys cannot be compared, a run asks on before it fails.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from sgc.tracing.code.operator_names import ASKED, BY_KEYS, GIVEN
from sgc.tracing.convert.loops.looping import SCOPES, loaded, placed
from sgc.tracing.convert.loops.mapped import ITEM
from sgc.tracing.convert.module_names import ModuleNames

_NAMES = {"sorted": "reverse", "max": "default", "min": "default"}  # with their other arguments


def with_keyed(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the functions of a tree in place."""
    keyed = _Keyed({*_NAMES} - names.bound if "*" not in names.bound else set())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [keyed.visit(each) for each in node.body]  # type: ignore[misc]
    return tree


class _Keyed(ast.NodeTransformer):
    """own: the names that are Python's."""

    def __init__(self, own: Set[str]) -> None:
        self._own, self._n = own, 0

    def visit(self, node: ast.AST) -> ast.AST:
        is_apart = isinstance(node, (*SCOPES, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        return node if is_apart else super().visit(node)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        found = self._items(node)
        given = {each.arg for each in node.keywords}
        if found is None or "key" not in given or not given <= {"key", _NAMES[found[0]]}:
            return node
        kind, items = found
        return self._by_keys("sort" if isinstance(node.func, ast.Attribute) else kind, items, node)

    def _items(self, node: ast.Call) -> tuple[str, ast.expr] | None:
        """The function that a call has the arguments of, and what it puts in order."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sort" and not node.args:
            return "sorted", node.func.value
        if not isinstance(node.func, ast.Name) or node.func.id not in self._own:
            return None
        is_one = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
        return (node.func.id, node.args[0]) if is_one else None

    def _by_keys(self, kind: str, items: ast.expr, node: ast.Call) -> ast.expr:
        self._n += 1
        over, key, each = (f"__sgc_keyed_{of}_{self._n}__" for of in ("items", "key", "each"))
        item = f"{ITEM}of_{self._n}__"

        def name(of: str) -> ast.expr:
            return loaded(of, node)

        def called(operator: str, *args: ast.expr) -> ast.Call:
            return placed(ast.Call(name(operator), [*args], []), node)

        def stored(of: str, value: ast.expr) -> ast.expr:
            target = placed(ast.Name(of, ast.Store()), value)
            return placed(ast.NamedExpr(target, value), value)

        kind_of = placed(ast.Constant(kind), node)
        asked = called(ASKED, kind_of, name(over), name(key))
        target = placed(ast.Name(item, ast.Store()), node)
        turns = ast.comprehension(target, name(each), [], 0)
        found = placed(ast.Call(name(key), [name(item)], []), node)
        keys = called("list", placed(ast.GeneratorExp(found, [turns]), node))
        nothing = placed(ast.Constant(None), node)
        keys_or_none = placed(ast.IfExp(called(GIVEN, name(each)), keys, nothing), node)
        made = called(BY_KEYS, kind_of, stored(over, items))
        for keyword in node.keywords:
            if keyword.arg == "key":
                keyword.value = stored(key, keyword.value)
        made.keywords = [
            *node.keywords,
            placed(ast.keyword("each", stored(each, asked)), node),
            placed(ast.keyword("keys", keys_or_none), node),
        ]
        return made
