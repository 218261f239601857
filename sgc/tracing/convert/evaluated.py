"""The parts of an expression, in the order in which Python evaluates them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
OPAQUE = (ast.Lambda, ast.GeneratorExp, *COMPREHENSIONS)


class Part(NamedTuple):
    """A part of an expression, and how another takes its place."""

    node: ast.expr
    put: Callable[[ast.expr], None]


def parts_of(node: ast.expr) -> list[Part]:
    """The parts that an expression always evaluates, in this order."""
    if isinstance(node, ast.Dict):
        return [*_of_dict(node)]
    if isinstance(node, ast.Call):
        return [*_of_call(node)]
    if isinstance(node, ast.NamedExpr):
        return [_of(node, "value")]
    if isinstance(node, ast.Compare):
        return [_of(node, "left"), _at(node.comparators, 0)]
    if isinstance(node, ast.Lambda):
        given = node.args
        nodes: list[Any] = [given.defaults, given.kw_defaults]
        return [_at(each, n) for each in nodes for n in range(len(each)) if each[n] is not None]
    if isinstance(node, (ast.GeneratorExp, *COMPREHENSIONS)):
        return [_of(node.generators[0], "iter")]
    found: list[Part] = []
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            found.append(_of(node, name))
        elif isinstance(value, list):
            found += [_at(value, n) for n, each in enumerate(value) if isinstance(each, ast.expr)]
    return found


def _of_dict(node: ast.Dict) -> Iterator[Part]:
    for n, key in enumerate(node.keys):
        if key is not None:
            yield _at(node.keys, n)  # type: ignore[arg-type]
        yield _at(node.values, n)


def _of_call(node: ast.Call) -> Iterator[Part]:
    if isinstance(node.func, ast.Attribute):
        yield _of(node.func, "value")
    else:
        yield _of(node, "func")
    yield from (_at(node.args, n) for n in range(len(node.args)))
    yield from (_of(each, "value") for each in node.keywords)


def _of(node: ast.AST, field: str) -> Part:
    return Part(getattr(node, field), lambda made: setattr(node, field, made))


def _at(nodes: list[ast.expr], n: int) -> Part:
    return Part(nodes[n], lambda made: nodes.__setitem__(n, made))
