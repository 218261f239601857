"""Rewrites loops over `map` and `filter`, whose function Python would call without a statement.

    for x in map(f, xs):          for item in xs:
        …                             x = f(item)
                                      …

`list(map(f, xs))` and the like become `list(f(item) for item in xs)`, which `comprehensions.py`
rewrites as a loop, if `f` is a function of the program. Calls with several iterables stay.
`list(g(x))` becomes `list(item for item in g(x))` if `g` is a generator of the program.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Set
from types import CodeType
from typing import NamedTuple, TypeVar

from sgc.tracing.code.using_up import USES_UP
from sgc.tracing.convert.module_names import ModuleNames, bound_in

NAMES = frozenset({"map", "filter"})
ITEM = "__sgc_mapped_item_"
_Node = TypeVar("_Node", bound=ast.AST)


class _Call(NamedTuple):
    """A call of `map` or `filter` on one iterable."""

    is_map: bool
    function: ast.expr
    items: ast.expr

    def given(self, item: Callable[[], ast.expr], function: ast.expr) -> ast.expr:
        """What the function gives for an item; for `filter(None, xs)`, the item."""
        is_none = isinstance(function, ast.Constant) and function.value is None
        if is_none and not self.is_map:
            return item()
        return _at(ast.Call(function, [item()], []), function)


def is_added(code: CodeType) -> bool:
    """Whether a code object is that of a generator made here."""
    names = code.co_varnames if code.co_name == "<genexpr>" else ()
    return any(name.startswith(ITEM) for name in names)


def with_mapped(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place, unless its module binds these names itself."""
    own = NAMES - names.bound
    if not (own or names.generators) or "*" in names.bound:
        return tree
    return Mapped(own, names).visit(tree)  # type: ignore[no-any-return]


class Mapped(ast.NodeTransformer):
    """own: of the names `map` and `filter`, those that are Python's."""

    def __init__(self, own: Set[str], names: ModuleNames) -> None:
        self._own, self._names, self._n = own, names, 0

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        call = self.call(node.iter)
        if call is None:
            return [*self._beside(node), node]
        before: list[ast.stmt] = []
        function = call.function
        if not self._is_kept(function, node):
            name = self.fresh("function")
            before.append(_at(ast.Assign([_stored(name, node)], function), node))
            function = _loaded(name, call.function)
        name = self.fresh("item")

        def item() -> ast.expr:
            return _loaded(name, node.iter)

        given = call.given(item, function)
        head: list[ast.stmt] = []
        if not call.is_map:
            skipped = _at(ast.UnaryOp(ast.Not(), given), node.iter)
            head.append(_at(ast.If(skipped, [_at(ast.Continue(), node.iter)], []), node.iter))
            given = item()
        head.append(_at(ast.Assign([node.target], given), node.iter))
        node.target, node.iter = _stored(name, node.target), call.items
        node.body = [*head, *node.body]
        return [*before, node]

    def _beside(self, loop: ast.For) -> list[ast.stmt]:
        """Makes what `enumerate` or `zip` goes over last a generator expression, if it is `map` or
        `filter` of a function that is the same at each turn; returns what is set before."""
        over = loop.iter
        called = over.func if isinstance(over, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else ""
        if name not in ("enumerate", "zip") or not over.args:  # type: ignore[attr-defined]
            return []
        place = 0 if name == "enumerate" else -1
        call = self.call(over.args[place])  # type: ignore[attr-defined]
        if call is None or not self._is_kept(call.function, loop):
            return []
        before: list[ast.stmt] = []
        if isinstance(call.function, ast.Lambda):  # it stays in the code once
            name = self.fresh("function")
            before.append(_at(ast.Assign([_stored(name, over)], call.function), over))
            call = call._replace(function=_loaded(name, over))
        over.args[place] = self.made(call, over.args[place])  # type: ignore[attr-defined]
        return before

    def made(self, call: _Call, at: ast.expr) -> ast.GeneratorExp:
        """What a call of `map` or `filter` gives, as a generator expression."""
        name = self.fresh("item")

        def item() -> ast.expr:
            return _loaded(name, at)

        given = call.given(item, call.function)
        elt, tests = (given, []) if call.is_map else (item(), [given])
        over = ast.comprehension(_stored(name, at), call.items, tests, 0)
        return _at(ast.GeneratorExp(elt, [over]), at)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node.func, ast.Name) else called
        if len(node.args) != 1 or called not in USES_UP:
            return node
        call = self.call(node.args[0])
        if call is None and self._is_generator(node.args[0]):
            node.args = [self._over(node.args[0])]
        if call is None or not self._is_users(call.function):
            return node
        node.args = [self.made(call, node.args[0])]
        return node

    def _is_generator(self, node: ast.expr) -> bool:
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return is_call and node.func.id in self._names.generators  # type: ignore[attr-defined]

    def _over(self, items: ast.expr) -> ast.expr:
        """A generator of the same items."""
        name = self.fresh("item")
        over = ast.comprehension(_stored(name, items), items, [], 0)
        return _at(ast.GeneratorExp(_loaded(name, items), [over]), items)

    def call(self, node: ast.expr) -> _Call | None:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        are_plain = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
        if node.func.id not in self._own or len(node.args) != 2 or not are_plain:
            return None
        return _Call(node.func.id == "map", *node.args)

    def _is_users(self, function: ast.expr) -> bool:
        """Whether this names one of the program's functions, the same for all items."""
        if not isinstance(function, ast.Name) or function.id in self._names.rebound:
            return False
        return function.id not in vars(builtins)

    def _is_kept(self, function: ast.expr, loop: ast.For) -> bool:
        """Whether an expression gives the same function at each turn of a loop."""
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            of = function.value.id
            return of in vars(builtins) and of not in self._names.bound
        if isinstance(function, ast.Name):
            return function.id not in self._names.rebound | {*bound_in(loop)}
        return isinstance(function, (ast.Lambda, ast.Constant))

    def fresh(self, name: str) -> str:
        self._n += 1
        return f"__sgc_mapped_{name}_{self._n}__"


def _loaded(name: str, at: ast.AST) -> ast.Name:
    return _at(ast.Name(name, ast.Load()), at)


def _stored(name: str, at: ast.AST) -> ast.Name:
    return _at(ast.Name(name, ast.Store()), at)


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)  # type: ignore[type-var]
