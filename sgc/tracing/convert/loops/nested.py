"""Rewrites loops over a generator expression as loops over what that goes over.

    for x in (f(y) for y in ys if y):     for u in ys:
        …                                     if not u:
                                                  continue
                                              x = f(u)
                                              …

In a comprehension, `for x in (f(y) for y in ys if y)` becomes `for u in ys if u for x in [f(u)]`.

`enumerate` of one, and `zip` whose last is one, go over what that goes over:

    for i, x in enumerate(f(y) for y in ys):     for n, u in enumerate(ys):
        …                                            i, x = n, f(u)
                                                     …

If `enumerate` is of one that leaves items out, they are counted in a variable.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from sgc.tracing.code.operator_names import ALWAYS
from sgc.tracing.convert.loops.looping import is_simple, only_item
from sgc.tracing.convert.module_names import ModuleNames

_Made = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Node = TypeVar("_Node", bound=ast.AST)


def with_flat(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    own = frozenset() if "*" in names.bound else _BESIDE - names.bound
    return _Flat(own).visit(tree)  # type: ignore[no-any-return]


_BESIDE = frozenset({"enumerate", "zip"})


class _Flat(ast.NodeTransformer):
    """own: of the names `enumerate` and `zip`, those that are Python's."""

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own
        self._n = 0

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        call = self._beside(node.iter)
        if call is not None:
            return self._numbered(node, call)
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

    def _beside(self, node: ast.expr) -> ast.Call | None:
        """A call of `enumerate` or `zip` whose items come from a generator expression."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        if node.func.id not in self._own or not node.args:
            return None
        if not all(each.arg == "strict" and _is_false(each.value) for each in node.keywords):
            return None
        if node.func.id == "enumerate" and len(node.args) > 2:
            return None
        made = node.args[_place(node)]
        is_simple_one = isinstance(made, ast.GeneratorExp) and len(made.generators) == 1
        are_plain = not any(isinstance(each, ast.Starred) for each in node.args)
        return node if is_simple_one and are_plain and _written(made) is not None else None

    def _numbered(self, node: ast.For, call: ast.Call) -> ast.stmt | list[ast.stmt]:
        made = call.args[_place(call)]
        assert isinstance(made, ast.GeneratorExp)
        if not made.generators[0].ifs:
            self.generic_visit_of(call)
            value = self._beside_taken(call)
            target, node.target = node.target, value[0]
            self._visit_rest(node)
            node.body = [_assigned(target, value[1]), *node.body]
            return node
        start = call.args[1] if len(call.args) > 1 else ast.Constant(0)
        if call.func.id != "enumerate" or type(getattr(start, "value", None)) is not int:  # type: ignore[attr-defined]
            self.generic_visit(node)
            return node
        name, at = self._fresh("number"), call
        begun = _assigned(_at(ast.Name(name, ast.Store()), at), _at(start, at))
        number = _at(ast.Name(name, ast.Load()), at)
        more = _at(ast.BinOp(number, ast.Add(), _at(ast.Constant(1), at)), at)
        both = _at(ast.Tuple([number, made.elt], ast.Load()), at)
        made.elt = both
        counted = _assigned(_at(ast.Name(name, ast.Store()), at), more)
        node.iter, node.body = made, [counted, *node.body]
        found = self.visit_For(node)
        return [begun, *(found if isinstance(found, list) else [found])]

    def generic_visit_of(self, call: ast.Call) -> None:
        """Visits the parts of a call but the generator expression that is taken."""
        place = _place(call)
        call.args = [each if n == place else self.visit(each) for n, each in enumerate(call.args)]

    def _visit_rest(self, node: ast.For) -> None:
        for field in ("body", "orelse"):
            found: list[ast.stmt] = []
            for each in getattr(node, field):
                made = self.visit(each)
                found += made if isinstance(made, list) else [made]
            setattr(node, field, found)

    def _beside_taken(self, call: ast.Call) -> tuple[ast.expr, ast.expr]:
        """Makes a call go over what its generator expression goes over; returns what its turns set,
        and the items that these were."""
        place = _place(call)
        made = call.args[place]
        written = _written(made)
        assert isinstance(made, ast.GeneratorExp)
        made.generators[0].iter = self.visit(made.generators[0].iter)
        made.elt = self.visit(made.elt)
        inner = self._taken(made, written)
        assert inner is not None
        first = inner.generators[0]
        call.args[place] = first.iter
        n_before = 1 if call.func.id == "enumerate" else place  # type: ignore[attr-defined]
        names = [self._fresh("beside") for _ in range(n_before)]
        set_to = [_at(ast.Name(name, ast.Store()), call) for name in names]
        read = [_at(ast.Name(name, ast.Load()), call) for name in names]
        target = _at(ast.Tuple([*set_to, first.target], ast.Store()), call)
        return target, _at(ast.Tuple([*read, inner.elt], ast.Load()), call)

    def _fresh(self, name: str) -> str:
        self._n += 1
        return f"__sgc_{name}_{self._n}__"

    def visit_comprehension_of(self, node: _Made) -> _Made:
        calls = [None if each.is_async else self._beside(each.iter) for each in node.generators]
        calls = [None if each is None or _tests(each) else each for each in calls]
        kept = [each and each.args[_place(each)] for each in calls]
        written = [_written(each.iter) for each in node.generators]
        for call in calls:
            if call is not None:
                call.args[_place(call)] = _at(ast.Constant(None), call)
        self.generic_visit(node)
        for call, made in zip(calls, kept, strict=True):
            if call is not None and made is not None:
                call.args[_place(call)] = made
        generators: list[ast.comprehension] = []
        for each, its, call in zip(node.generators, written, calls, strict=True):
            if call is not None:
                target, value = self._beside_taken(call)
                generators.append(ast.comprehension(target, call, [], 0))
                each.iter = _at(ast.List([value], ast.Load()), value)
                generators.append(each)
                continue
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


def _place(call: ast.Call) -> int:
    """The argument whose items are taken last."""
    return 0 if call.func.id == "enumerate" else len(call.args) - 1  # type: ignore[attr-defined]


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _tests(call: ast.Call) -> bool:
    """Whether the generator expression of a call leaves items out."""
    return bool(call.args[_place(call)].generators[0].ifs)  # type: ignore[attr-defined]


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
