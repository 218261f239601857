"""Puts generator expressions that a variable has where the variable is used up.

    pairs = (f(x) for x in xs if x)      items = xs
    …                                    …
    for a, b in pairs:                   for a, b in (f(x) for x in items if x):

A variable that is set once and read once, later in its block and at most once for each time that it
is set, is nothing but its generator, which so becomes a loop (`nested.py`, `comprehensions.py`).
What it goes over is evaluated where it was, and all else where its items are taken, as before.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from sgc.tracing.code.operator_names import ALWAYS
from sgc.tracing.code.using_up import Place, places_in
from sgc.tracing.convert.loops.comprehensions import named_in
from sgc.tracing.convert.loops.looping import SCOPES, is_simple
from sgc.tracing.convert.loops.mapped import ITEM
from sgc.tracing.convert.module_names import ModuleNames
from sgc.tracing.pieces.effects.changes import changed_roots
from sgc.tracing.pieces.names import parameters

_Node = TypeVar("_Node", bound=ast.AST)


def with_named_generators(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    maker = _Maker(names.rebound)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            maker.rewrite(node)
    return tree


class _Maker:
    def __init__(self, rebound: frozenset[str]) -> None:
        self._rebound, self._n = rebound, 0

    def rewrite(self, function: ast.FunctionDef) -> None:
        used = Counter(each.id for each in ast.walk(function) if isinstance(each, ast.Name))
        for block in _blocks(function):
            for n, stmt in enumerate(block):
                name = _named(stmt)
                if name is None or used[name] != 2 or name in self._rebound:
                    continue
                place = next(places_in(block[n + 1 :], name), None)
                if place is not None and not _is_changed_before(block[n + 1 :], name, function):
                    assert isinstance(stmt, ast.Assign)
                    block[n] = self._moved(stmt, place)

    def _moved(self, stmt: ast.Assign, place: Place) -> ast.stmt:
        """Puts the generator of an assignment into a place; returns what stays of the statement,
        which has the generator's function where it was, but never runs it."""
        made = stmt.value
        assert isinstance(made, ast.GeneratorExp)
        self._n += 1
        name, moved = f"{ITEM}of_{self._n}__", self._renamed(made)
        over = moved.generators[0].iter
        moved.generators[0].iter = _at(ast.Name(name, ast.Load()), over)
        place.put(moved)
        kept = _at(ast.Assign([_at(ast.Name(name, ast.Store()), over)], over), stmt)
        return _at(ast.If(_at(ast.Name(ALWAYS, ast.Load()), stmt), [kept], [stmt]), stmt)

    def _renamed(self, made: ast.GeneratorExp) -> ast.GeneratorExp:
        """A copy with variables by which it is known as added."""
        made = copy.deepcopy(made)
        targets = [each for part in made.generators for each in ast.walk(part.target)]
        own = {each.id for each in targets if isinstance(each, ast.Name)}
        outer = {id(each) for each in ast.walk(made.generators[0].iter)}
        for each in ast.walk(made):
            if isinstance(each, ast.Name) and each.id in own and id(each) not in outer:
                each.id = f"{ITEM}{each.id}_{self._n}__"
        return made


def _is_changed_before(block: Sequence[ast.stmt], name: str, function: ast.FunctionDef) -> bool:
    """Whether what a generator of this name goes over may be changed before a block uses it. Items
    that a list gets meanwhile it has in both ways, but a dict that it has begun cannot be gone on
    with."""
    lists = _lists(function)
    for stmt in block:
        is_used = any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(stmt))
        if is_used and not isinstance(stmt, _BLOCKS):
            return False
        parts = [each for each in ast.walk(stmt) if isinstance(each, ast.stmt) or each is stmt]
        if not all(_is_of_lists(each, lists) for each in parts):
            return True
        if is_used:
            return False
    return False


def _is_of_lists(stmt: ast.AST, lists: frozenset[str]) -> bool:
    """Whether a statement, without its blocks, changes no more than lists and streams."""
    if isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
        return isinstance(stmt.op, ast.Add) and _is_of_lists(ast.Expr(stmt.value), lists)
    fields = [value for _, value in ast.iter_fields(stmt)]
    parts = [each for value in fields for each in (value if isinstance(value, list) else [value])]
    own = [each for each in parts if isinstance(each, ast.AST) and not isinstance(each, ast.stmt)]
    if isinstance(stmt, (ast.Assign, ast.Delete, ast.AugAssign)):
        own = [stmt]
    calls = (node for each in own for node in ast.walk(each) if isinstance(node, ast.Call))
    if not all(_is_known(call.func) for call in calls):
        return False
    return all(root in lists for each in own for root in changed_roots(each, lists))


def _is_known(function: ast.expr) -> bool:
    """Whether a function, by its name, is Python's own or the language's; others may change more
    than can be seen."""
    if isinstance(function, ast.Attribute):
        of = function.value
        return function.attr in _METHODS or (isinstance(of, ast.Name) and of.id == "sgc")
    return isinstance(function, ast.Name) and hasattr(builtins, function.id)


def _lists(function: ast.FunctionDef) -> frozenset[str]:
    """The variables that a function sets only to new lists."""
    n_set = Counter(each.id for each in ast.walk(function) if isinstance(each, ast.Name)
                    and isinstance(each.ctx, ast.Store))  # fmt: skip
    made = Counter(target.id for node in ast.walk(function) if isinstance(node, ast.Assign)
                   and _is_new_list(node.value) for target in node.targets
                   if isinstance(target, ast.Name))  # fmt: skip
    return (
        frozenset(made)
        - parameters(function.args)
        - {name for name in made if made[name] != n_set[name]}
    )


def _is_new_list(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    is_made = isinstance(called, ast.Name) and called.id in ("list", "sorted")
    return is_made or isinstance(value, (ast.List, ast.ListComp))


_BLOCKS = (ast.If, ast.Try, ast.With)
_METHODS = frozenset(name for of in (str, list, tuple, dict, set) for name in dir(of))


def _named(stmt: ast.stmt) -> str | None:
    """The variable that a statement sets to a generator expression that can be put elsewhere."""
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) > 1:
        return None
    target, value = stmt.targets[0], stmt.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.GeneratorExp):
        return None
    over = value.generators[0].iter
    is_plain = is_simple(value) and not any(isinstance(each, SCOPES) for each in ast.walk(over))
    is_plain = is_plain and not named_in(value)
    return target.id if is_plain else None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a function, without those of functions inside."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    inner = [each for each in ast.iter_child_nodes(node) if not isinstance(each, _FUNCTIONS)]
    for each in inner:
        if isinstance(each, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _blocks(each)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)  # type: ignore[type-var]
