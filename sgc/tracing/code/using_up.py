"""Finds where a program takes all items of a variable's iterator."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sgc.tracing.code.trees import COMPREHENSIONS

# Functions that consume a generator at once, and treat it as a list.
USES_UP = frozenset({
    "join", "sum", "list", "tuple", "set", "frozenset", "sorted", "min", "max", "Counter", "dict",
    "deque", "fromkeys", "fsum", "mean", "median",
})  # fmt: skip
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_GOING_OVER = USES_UP | {"any", "all"}
# Statements whose blocks run at most once each time that the statement runs.
_ONCE = (ast.If, ast.Try, ast.With)


class Place(NamedTuple):
    """A part of a node: the node's field, and the index in it if the field is a list."""

    node: ast.AST
    field: str
    at: int | None = None

    @property
    def part(self) -> ast.expr:
        found = getattr(self.node, self.field)
        return found if self.at is None else found[self.at]  # type: ignore[no-any-return]

    def put(self, part: ast.expr) -> None:
        if self.at is None:
            setattr(self.node, self.field, part)
        else:
            getattr(self.node, self.field)[self.at] = part


def places_in(block: Iterable[ast.stmt], name: str) -> Iterator[Place]:
    """The places that iterate a variable's value, each at most once when the block runs."""
    for stmt in block:
        if isinstance(stmt, _ONCE):
            for inner in _blocks_of(stmt):
                yield from places_in(inner, name)
        if isinstance(stmt, ast.For):
            yield from _at(Place(stmt, "iter"), name)
        for field, value in ast.iter_fields(stmt):
            is_once = field != "target" and not isinstance(stmt, ast.While)
            if isinstance(value, ast.expr) and is_once:
                yield from places_inside(value, name)


def places_inside(node: ast.AST, name: str) -> Iterator[Place]:
    """Such places in an expression."""
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, COMPREHENSIONS):
        yield from _at(Place(node.generators[0], "iter"), name)
        yield from places_inside(node.generators[0].iter, name)
        return
    if isinstance(node, ast.Call) and _name_of(node.func) in _GOING_OVER:
        for n in range(len(node.args)):
            yield from _at(Place(node, "args", n), name)
    if isinstance(node, _DISPLAYS):
        for each in node.elts:
            if isinstance(each, ast.Starred):
                yield from _at(Place(each, "value"), name)
    for child in ast.iter_child_nodes(node):
        yield from places_inside(child, name)


def _at(place: Place, name: str) -> Iterator[Place]:
    if isinstance(place.part, ast.Name) and place.part.id == name:
        yield place


def _blocks_of(stmt: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(stmt, name, []) for name in ("body", "orelse", "finalbody")]
    return [*blocks, *(each.body for each in getattr(stmt, "handlers", ()))]


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
