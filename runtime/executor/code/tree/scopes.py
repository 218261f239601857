"""Where the names of a graph's code live: each function has a frame, a list with a slot per name.

Slot 0 holds the run, slot 1 the frame of the module. A name that an inner function uses lives in a
cell, a list of one. A comprehension is part of its function and has slots of its own there; a
generator expression is a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Frame = list[Any]


class Unset:
    """The content of a slot while its name has no value."""


UNSET = Unset()
_FUNCTIONS = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name lives. is_free: whether it is another function's name in Python, too."""

    slot: int
    is_cell: bool
    is_free: bool = False
    is_global: bool = False


@dataclass(slots=True)
class Scope:
    """A function, a class, or the module. blocks: the names of the enclosing comprehensions, the
    innermost last; owner: the key of the class, if the scope is one.
    """

    parent: Scope | None
    name: str = ""
    places: dict[str, Place] = field(default_factory=dict)
    blocks: list[dict[str, Place]] = field(default_factory=list)
    captured: list[tuple[int, int]] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    n_slots: int = 2
    nonlocals: set[str] = field(default_factory=set)
    owner: str = ""

    @property
    def is_class(self) -> bool:
        return bool(self.owner)

    def new_slot(self) -> int:
        self.n_slots += 1
        return self.n_slots - 1

    def add(self, name: str, is_cell: bool) -> Place:
        """Gives a name of the function a slot."""
        place = Place(self.new_slot(), is_cell, is_global=self.parent is None)
        if is_cell:
            self.cells.append(place.slot)
        self.places[name] = place
        return place

    def add_block(self, names: dict[str, bool]) -> dict[str, Place]:
        """Gives names of a comprehension slots of their own; names: whether each is a cell."""
        block = {name: Place(self.new_slot(), is_cell) for name, is_cell in names.items()}
        self.blocks.append(block)
        return block

    def find(self, name: str) -> Place | None:
        """Returns the place of a name in this function's frame, or in the module's."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        if name in self.places and not (self.is_class and self.blocks):
            place = self.places[name]
            if self.blocks and not place.is_global:
                return Place(place.slot, place.is_cell, True)
            return place
        return self._outer(name)

    def store_place(self, name: str) -> Place | None:
        """The place of a name that is bound here: a walrus binds outside of comprehensions."""
        return self.places.get(name) or self._outer(name)

    def _outer(self, name: str) -> Place | None:
        if self.parent is None:
            return None
        around = self.parent.parent if self.parent.is_class else self.parent
        found = around.find(name) if around is not None else None
        if found is None or found.is_global:
            return found
        place = Place(self.new_slot(), True, True)
        self.captured.append((place.slot, found.slot))
        self.places[name] = place
        return place


def qualified(scope: Scope, name: str) -> str:
    """The qualified name of a function that is defined in a scope."""
    if not scope.name:
        return name
    return f"{scope.name}.{name}" if scope.is_class else f"{scope.name}.<locals>.{name}"


def bound_names(body: list[ast.AST]) -> dict[str, None]:
    """The names that statements bind in their function, in order."""
    found: dict[str, None] = {}
    for statement in body:
        for node in _walk(statement):
            found |= dict.fromkeys(_bound_by(node))
    return found


def _bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's own scope, with the parts of inner scopes that are evaluated or
    bound in it."""
    yield node
    if isinstance(node, ast.ClassDef):
        return
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                yield from _walk(default)
    elif isinstance(node, (*_COMPREHENSIONS, ast.GeneratorExp)):
        for inner in ast.iter_child_nodes(node):
            yield from (each for each in _walk_inside(inner))
    else:
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _walk_inside(node: ast.AST) -> Iterator[ast.AST]:
    """The names that walruses of a comprehension bind outside of it."""
    if isinstance(node, ast.NamedExpr):
        yield node.target
    if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _walk_inside(child)


def nonlocal_names(body: list[ast.AST]) -> set[str]:
    """The names that statements declare to be of an outer function."""
    return {
        name
        for statement in body
        for node in _walk(statement)
        if isinstance(node, ast.Nonlocal)
        for name in node.names
    }


def inner_names(body: list[ast.AST]) -> set[str]:
    """Names that inner functions mention: if they are this function's, they live in cells."""
    return {
        name
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, _FUNCTIONS)
        for inner in ast.walk(node)
        for name in _mentioned(inner)
    }


def _mentioned(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return list(node.names) if isinstance(node, ast.Nonlocal) else _bound_by(node)


def target_names(targets: list[ast.expr]) -> dict[str, None]:
    """The names that targets of a comprehension bind."""
    return {
        node.id: None
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
