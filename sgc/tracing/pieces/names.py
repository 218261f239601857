"""Finds the names that a part of a program reads and writes, by Python's scopes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp,
           ast.DictComp, ast.GeneratorExp)  # fmt: skip


@dataclass(slots=True)
class Names:
    """The names of a part of a program. reads: names that it loads and does not bind in a scope of
    its own; writes: names that it binds in the surrounding scope; outer: names that it declares
    global or nonlocal.
    """

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    deletes: set[str] = field(default_factory=set)


def names_of(nodes: Iterable[ast.AST]) -> Names:
    """The names of some statements or expressions of one scope."""
    found = _Finder()
    for node in nodes:
        found.visit(node)
    return found.names


def free_names(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that a function reads from enclosing scopes when it runs."""
    body = function.body if isinstance(function.body, list) else [function.body]
    inside = names_of(body)
    bound = (inside.writes | parameters(function.args)) - inside.outer
    return inside.reads - bound


def called_variables(node: ast.AST) -> set[str]:
    """The names that a part of a program both binds, in any scope, and calls."""
    parts = list(ast.walk(node))
    calls = [each.func for each in parts if isinstance(each, ast.Call)]
    called = {each.id for each in calls if isinstance(each, ast.Name)}
    return called & {name for each in parts for name in bound_by(each)}


@lru_cache(maxsize=4096)
@lru_cache(maxsize=4096)
def called_in(node: ast.AST) -> frozenset[str]:
    """The names that a part of a program calls and does not bind itself."""
    parts = [each for each in ast.walk(node) if each is not node]
    called = {each.func.id for each in (node, *parts) if isinstance(each, ast.Call)
              and isinstance(each.func, ast.Name)}  # fmt: skip
    imported = {each.name for each in parts if isinstance(each, ast.alias)}
    return frozenset(called - imported).difference(*map(bound_by, parts))


def bound_by(node: ast.AST) -> Iterator[str | None]:
    """The names that a node itself binds, in any scope; None for a part that binds none."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):  # an imported name without `as` keeps its meaning
        yield node.asname
    elif isinstance(node, ast.MatchMapping):
        yield node.rest
    else:
        yield getattr(node, "name", None)


def parameters(args: ast.arguments) -> set[str]:
    return {each.arg for each in _parameters(args)}


def _parameters(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (each for each in (args.vararg, args.kwarg) if each is not None)


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names = Names()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.names.reads.add(node.id)
        else:
            self.names.writes.add(node.id)
            if isinstance(node.ctx, ast.Del):
                self.names.deletes.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.names.reads.add(node.target.id)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self.names.writes.add(node.name)
            self.names.deletes.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._bind(node.rest)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for each in node.names:
            self.names.writes.add(each.asname or each.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.names.outer |= set(node.names)

    visit_Nonlocal = visit_Global

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.writes.add(node.name)
        self.names.outer.add(node.name)  # classes are not analysed

    # -- scopes ---------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._bind(node.name)
        self._around(node.args, node.decorator_list)
        self._inner(free_names(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._bind(node.name)
        self.names.outer.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._around(node.args, [])
        self._inner(free_names(node))

    def visit_comprehension_scope(self, node: ast.AST, *results: ast.expr) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)
        inside = names_of([
            *(each.target for each in generators), *(each.iter for each in generators[1:]),
            *(test for each in generators for test in each.ifs), *results,
        ])  # fmt: skip
        bound = names_of([each.target for each in generators]).writes
        self._inner(inside.reads - bound)
        self.names.writes |= inside.writes - bound  # by `:=`

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self.visit_comprehension_scope(node, node.elt)

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self.visit_comprehension_scope(node, node.key, node.value)

    def _bind(self, name: str | None) -> None:
        if name is not None:
            self.names.writes.add(name)

    def _around(self, args: ast.arguments, decorators: list[ast.expr]) -> None:
        """Visits the parts that are evaluated when a function is made."""
        defaults = [*args.defaults, *(each for each in args.kw_defaults if each is not None)]
        for each in (*defaults, *decorators):
            self.visit(each)

    def _inner(self, reads: set[str]) -> None:
        self.names.reads |= reads
