"""Rewrites loops over a generator expression as loops over what that goes over.

    for x in (f(y) for y in ys if y):     for u in ys:
        …                                     if not u:
                                                  continue
                                              x = f(u)
                                              …

In a comprehension, `for x in (f(y) for y in ys if y)` becomes `for u in ys if u for x in [f(u)]`.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from sgc.tracing.code.operator_names import ALWAYS
from sgc.tracing.convert.loops.comprehensions import is_simple
from sgc.tracing.convert.loops.looping import only_item

_Made = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Node = TypeVar("_Node", bound=ast.AST)


def with_flat(tree: ast.Module) -> ast.Module:
    """Rewrites the tree in place."""
    return _Flat().visit(tree)  # type: ignore[no-any-return]


class _Flat(ast.NodeTransformer):
    def __init__(self) -> None:
        self._n = 0

    def visit_For(self, node: ast.For) -> ast.stmt:
        written = _written(node.iter)
        self.generic_visit(node)
        inner = self._taken(node.iter, written)
        if inner is None or not all(map(only_item, inner.generators[1:])):
            return node
        first, *rest = inner.generators
        head = _skipping(first)
        for each in rest:
            head += [_assigned(each.target, only_item(each)), *_skipping(each)]
        node.body = [*head, _assigned(node.target, inner.elt), *node.body]
        node.target, node.iter = first.target, first.iter
        return node

    def visit_comprehension_of(self, node: _Made) -> _Made:
        written = [_written(each.iter) for each in node.generators]
        self.generic_visit(node)
        generators: list[ast.comprehension] = []
        for each, its in zip(node.generators, written, strict=True):
            inner = None if each.is_async else self._taken(each.iter, its)
            if inner is not None:
                generators += inner.generators
                each.iter = _at(ast.List([inner.elt], ast.Load()), inner.elt)
            generators.append(each)
        node.generators = generators
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    def _taken(self, node: ast.expr, written: ast.expr | None) -> ast.GeneratorExp | None:
        """A generator expression with names that nothing else has; None if it has to stay.

        As it was written it stays in the code, which so has the same functions in the same order,
        but it never runs.
        """
        if not isinstance(node, ast.GeneratorExp) or written is None:
            return None
        self._rename(node)
        first = node.generators[0]
        over = first.iter
        if isinstance(over, ast.IfExp) and _is_always(over.test):
            over = over.body
        first.iter = _at(ast.IfExp(_at(ast.Name(ALWAYS, ast.Load()), over), over, written), over)
        return node

    def _rename(self, made: ast.GeneratorExp) -> None:
        targets = [target for each in made.generators for target in ast.walk(each.target)]
        self._n += 1
        names = {t.id: f"__sgc_{t.id}_{self._n}__" for t in targets if isinstance(t, ast.Name)}
        parts = [made.elt, *made.generators[1:], *made.generators[0].ifs, made.generators[0].target]
        for name in (inner for part in parts for inner in ast.walk(part)):
            if isinstance(name, ast.Name):
                name.id = names.get(name.id, name.id)


def _written(node: ast.expr) -> ast.expr | None:
    """A copy of a generator expression, if its parts can be written twice."""
    is_made = isinstance(node, ast.GeneratorExp) and is_simple(node)
    return copy.deepcopy(node) if is_made else None


def _is_always(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == ALWAYS


def _skipping(each: ast.comprehension) -> list[ast.stmt]:
    """Statements that go on to the next turn unless all tests are true."""
    tests = [_at(ast.UnaryOp(ast.Not(), test), test) for test in each.ifs]
    return [_at(ast.If(test, [_at(ast.Continue(), test)], []), test) for test in tests]


def _assigned(target: ast.expr, value: ast.expr | None) -> ast.stmt:
    assert value is not None
    return _at(ast.Assign([target], value), value)


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)  # type: ignore[type-var]
