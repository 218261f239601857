"""Calls of `sub` with a function, as a loop over the matches.

    x = p.sub(f, text)        found, texts = matches(p.sub, f, text), []
                              for m in found.loop:
                                  texts.append(f(m))
                              x = filled(found, texts)

`matches` gives no match where Python's own `sub` can do it all: `filled` calls it then.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sgc.tracing.code.operator_names import CALLEE, FILLED, MATCHES
from sgc.tracing.convert.loops.looping import SCOPES


class Substitution(NamedTuple):
    """before: the statements before a call of `sub`; value: what takes its place."""

    before: list[ast.stmt]
    value: ast.expr


def substitution(node: ast.Call, fresh: Callable[[str], str]) -> Substitution | None:
    """What replaces a call that may be one of `sub` with a function. fresh: makes names."""
    function = _function_of(node)
    match = fresh("match")
    each = None if function is None else _given(function, match)
    if each is None:
        return None
    found, texts = fresh("found"), fresh("texts")
    called = ast.Call(ast.Name(CALLEE, ast.Load()), [node.func], [])
    matches = ast.Call(ast.Name(MATCHES, ast.Load()), [called, *node.args], node.keywords)
    append = ast.Attribute(ast.Name(texts, ast.Load()), "append", ast.Load())
    over = ast.Attribute(ast.Name(found, ast.Load()), "loop", ast.Load())
    adds: list[ast.stmt] = [ast.Expr(ast.Call(append, [each], []))]
    before: list[ast.stmt] = [
        ast.Assign([ast.Name(found, ast.Store())], matches),
        ast.Assign([ast.Name(texts, ast.Store())], ast.List([], ast.Load())),
        ast.For(ast.Name(match, ast.Store()), over, adds, []),
    ]
    given: list[ast.expr] = [ast.Name(found, ast.Load()), ast.Name(texts, ast.Load())]
    value = ast.Call(ast.Name(FILLED, ast.Load()), given, [])
    return Substitution([_placed(stmt, node) for stmt in before], _placed(value, node))


def _function_of(node: ast.Call) -> ast.expr | None:
    """The argument of a call of a method or function `sub` that may be a function."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "sub":
        return None
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return None
    of = node.func.value
    after = node.args[int(isinstance(of, ast.Name) and of.id == "re") :]  # the pattern is before it
    return after[0] if len(after) > 1 else None


def _given(function: ast.expr, match: str) -> ast.expr | None:
    """What a function gives for a match; that of a lambda is its expression."""
    if isinstance(function, ast.Lambda):
        return _body(function, match)
    is_named = isinstance(function, ast.Name) and function.id not in vars(builtins)
    is_method = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    if not is_named and not is_method:
        return None
    return ast.Call(copy.deepcopy(function), [ast.Name(match, ast.Load())], [])


def _body(function: ast.Lambda, match: str) -> ast.expr | None:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    defaults = given.defaults
    are_plain = all(isinstance(each, (ast.Name, ast.Constant)) for each in defaults)
    is_other = given.vararg or given.kwonlyargs or given.kwarg
    if is_other or not are_plain or len(names) != len(defaults) + 1:
        return None
    if any(isinstance(each, (*SCOPES, ast.NamedExpr)) for each in ast.walk(function.body)):
        return None
    values: dict[str, ast.expr] = dict(zip(names[1:], defaults, strict=True))
    values[names[0]] = ast.Name(match, ast.Load())
    return _Filling(values).visit(copy.deepcopy(function.body))  # type: ignore[no-any-return]


class _Filling(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        return node if value is None else ast.copy_location(copy.copy(value), node)


_Made = TypeVar("_Made", bound=ast.AST)


def _placed(made: _Made, at: ast.expr) -> _Made:
    """Gives new nodes the position of the call."""
    for node in ast.walk(made):
        if isinstance(node, (ast.expr, ast.stmt)) and not hasattr(node, "lineno"):
            ast.copy_location(node, at)
    return made
