"""Rewrites pieces of a program to put them into the graph if their inputs are abstract."""

from __future__ import annotations

import ast
import copy
from typing import Any, TypeVar

from sgc.tracing.code.operator_names import ALWAYS, AS_VALUE, IN_PYTHON, IS_RUN_TIME, PIECE
from sgc.tracing.code.trees import Position, position
from sgc.tracing.pieces.piece import NO_PIECES, Piece, Pieces


def with_pieces(tree: ast.Module, pieces: Pieces) -> ast.Module:
    """Rewrites the tree's pieces in place as conditional calls of an operator; those that run in
    Python as calls, so that all of their runs are alike."""
    if pieces == NO_PIECES:
        return tree
    return _Rewriting(pieces).visit(tree)  # type: ignore[no-any-return]


class _Rewriting(ast.NodeTransformer):
    def __init__(self, pieces: Pieces) -> None:
        every = (*pieces.as_code, *pieces.in_python)
        self._by_place = {(each.place, type(each.node)): each for each in every}
        self._in_python = pieces.in_python
        self._as_values = pieces.as_values
        self._nonlocals: list[set[str]] = [set()]  # of the functions around, innermost last

    def visit(self, node: ast.AST) -> Any:
        place = position(node)
        names = sorted(name for at, name in self._as_values if at == place)
        if not names or not isinstance(node, ast.stmt):
            return self._visited(node, place)
        before = [
            ast.Assign([ast.Name(name, ast.Store())], _call(AS_VALUE, [ast.Name(name, ast.Load())]))
            for name in names
        ]
        return [*(_placed(each, node) for each in before), self._visited(node, place)]

    def _visited(self, node: ast.AST, place: Position | None) -> ast.AST:
        found = None if place is None else self._by_place.get((place, type(node)))  # type: ignore[arg-type]
        if isinstance(node, ast.FunctionDef):
            return self._function(node)
        if found is None:
            return self.generic_visit(node)
        self._nonlocals[-1] |= found.nonlocals
        given = [ast.Constant(found.key), *_loads(found)]
        if found in self._in_python:
            return _placed(_in_python(found, given, node), found.node)
        if isinstance(node, ast.stmt):
            return self._statement(found, node)
        assert isinstance(node, ast.expr)
        names = sorted(found.inputs, key=lambda name: (name not in found.hoisted, name))
        test = _call(IS_RUN_TIME, [self._first(found, name) for name in names])
        plain: Any = _Hoisting(found).visit(node) if found.hoisted else node
        return _placed(ast.IfExp(test, _call(PIECE, given), plain), node)

    def _statement(self, found: Piece, node: ast.stmt) -> ast.stmt:
        """A statement as an `if`: its test evaluates the hoisted parts once, under names that both
        arms use."""
        call = _call(PIECE, [ast.Constant(found.key), *_loads(found)])
        targets = [_target(found, name) for name in found.targets]
        done: ast.stmt = ast.Expr(call)
        if len(targets) == 1:
            done = ast.Assign(targets, call)
        elif targets:
            done = ast.Assign([ast.Tuple(targets, ast.Store())], call)
        names = sorted(found.inputs, key=lambda name: (name not in found.hoisted, name))
        test = _call(IS_RUN_TIME, [self._first(found, name) for name in names])
        plain: Any = _Hoisting(found).visit(node)
        return _placed(ast.If(test, [done], [plain]), node)

    def _first(self, found: Piece, name: str) -> ast.expr:
        """An input where it is evaluated first."""
        if name not in found.hoisted:
            return _load(found, name)
        part = copy.deepcopy(found.hoisted[name])  # each conversion changes its tree
        if isinstance(part, ast.GeneratorExp):
            part = ast.Call(ast.Name("list", ast.Load()), [part], [])
        return ast.NamedExpr(ast.Name(_own(name), ast.Store()), part)

    def _function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function, which sets the variables around it whose values its pieces change."""
        self._nonlocals.append(set())
        self.generic_visit(node)
        names = sorted(self._nonlocals.pop())
        if names:
            place = int(ast.get_docstring(node, clean=False) is not None)
            node.body.insert(place, ast.copy_location(ast.Nonlocal(names), node.body[0]))
        return node


def _in_python(found: Piece, given: list[ast.expr], node: ast.AST) -> ast.expr | ast.stmt:
    """A call; the piece itself stays in an arm that never runs, since the functions in it stand for
    those of the original code."""
    call, always = _call(IN_PYTHON, given), ast.Name(ALWAYS, ast.Load())
    if isinstance(node, ast.expr):
        return ast.IfExp(always, call, node)
    targets = [_target(found, name) for name in found.writes]
    done = ast.Assign(targets, call) if targets else ast.Expr(call)
    return ast.If(always, [done], [node])  # type: ignore[list-item]


class _Hoisting(ast.NodeTransformer):
    """Replaces hoisted parts by their names."""

    def __init__(self, found: Piece) -> None:
        self._names = {
            (position(node), type(node)): _own(name) for name, node in found.hoisted.items()
        }

    def visit(self, node: ast.AST) -> ast.AST:
        name = self._names.get((position(node), type(node)))  # type: ignore[arg-type]
        if name is None:
            return self.generic_visit(node)
        return ast.copy_location(ast.Name(name, ast.Load()), node)  # type: ignore[type-var]


def _own(name: str) -> str:
    return f"__sgc_{name}__"


def _loads(found: Piece) -> list[ast.expr]:
    return [_load(found, name) for name in found.inputs]


def _load(found: Piece, name: str) -> ast.expr:
    if name in found.given:
        return copy.deepcopy(found.given[name])
    return ast.Name(_own(name) if name in found.hoisted else name, ast.Load())


def _target(found: Piece, name: str) -> ast.expr:
    of = found.given.get(name)
    if isinstance(of, ast.Attribute):
        return ast.Attribute(copy.deepcopy(of.value), of.attr, ast.Store())
    return ast.Name(name, ast.Store())


def _call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), args, [])


_Made = TypeVar("_Made", bound=ast.AST)


def _placed(made: _Made, at: ast.stmt | ast.expr) -> _Made:
    """Gives new nodes the piece's position; the piece itself keeps its own."""
    for node in ast.walk(made):
        if isinstance(node, (ast.expr, ast.stmt)) and not hasattr(node, "lineno"):
            ast.copy_location(node, at)
    return made
