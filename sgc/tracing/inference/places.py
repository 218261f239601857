"""Scopes of code, and the cells of its places."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sgc.ir.code import Code
from sgc.ir.code_checks import Import
from sgc.tracing.inference.cells import RECORD, Cell, Cells
from sgc.tracing.inference.members import MEMBER, Enumeration, enumeration

MAX_TUPLE = 16  # items of a tuple whose types are told apart
Function = ast.FunctionDef | ast.Lambda


@dataclass(slots=True)
class Scope:
    """The cells of a function's or comprehension's own names; other names are in `outer`."""

    outer: Scope | None
    cells: dict[str, Cell] = field(default_factory=dict)
    functions: dict[str, Known] = field(default_factory=dict)
    items: Cell | None = None  # what a generator yields

    def cell(self, name: str) -> Cell | None:
        scope = self._of(name)
        return None if scope is None else scope.cells.get(name)

    def function(self, name: str) -> Known | None:
        scope = self._of(name)
        return None if scope is None else scope.functions.get(name)

    def _of(self, name: str) -> Scope | None:
        """The innermost scope that has a name."""
        if name in self.cells or name in self.functions:
            return self
        return None if self.outer is None else self.outer._of(name)


@dataclass(slots=True, eq=False)
class Known:
    """A function whose code is known."""

    node: Function
    scope: Scope
    gives: Cell


class Places(ABC):
    """The cells of all places in some code. loose: the cells of values that others may hold."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.cells = Cells()
        self._at: dict[tuple[int, str], Cell] = {}
        self.loose: list[Cell] = []
        found = (enumeration(each) for each in code.body if isinstance(each, ast.ClassDef))
        self.enumerations = {each.name: each for each in found if each is not None}

    @property
    def imports(self) -> dict[str, Import]:
        return self.code.imports

    @abstractmethod
    def of(self, node: ast.expr, scope: Scope) -> Cell:
        """The cell of an expression; evaluates its parts."""

    @abstractmethod
    def function_of(self, node: ast.expr, scope: Scope) -> Known | None:
        """The function to which an expression refers, if its code is known."""

    @abstractmethod
    def applied(self, known: Known, given: Sequence[Cell]) -> Cell:
        """The result of a function for positional arguments."""

    @abstractmethod
    def called_by_others(self, known: Known) -> None:
        """Notes that unknown code may call a function with any arguments."""

    def at(self, node: ast.AST, role: str = "") -> Cell:
        """The cell of a place in the code."""
        key = (id(node), role)
        if key not in self._at:
            self._at[key] = self.cells.new()
        return self._at[key]

    def add(self, cell: Cell, kind: str) -> None:
        found = self.cells.found(cell)
        if kind not in found.kinds:
            found.kinds.add(kind)
            self.cells.n_changes += 1

    def joined(self, cells: Iterable[Cell], into: Cell) -> Cell:
        for each in cells:
            self.cells.flow(each, into)
        return into

    def enumeration(self, node: ast.expr, scope: Scope) -> Enumeration | None:
        """The enumeration that an expression names."""
        is_name = isinstance(node, ast.Name) and scope.cell(node.id) is None
        return self.enumerations.get(node.id) if is_name else None  # type: ignore[attr-defined]

    def as_number(self, kind: str) -> str:
        """The kind of a value for operators: a member of an IntEnum is an int."""
        of = self.enumerations.get(kind.removeprefix(MEMBER)) if kind[:7] == MEMBER else None
        return "int" if of is not None and of.counts_as == "int" else kind

    def row(self, items: Sequence[Cell], node: ast.AST, role: str = "") -> Cell:
        """A tuple of items, made at a place in the code."""
        if len(items) > MAX_TUPLE:
            return self.cells.holding("tuple", self.joined(items, self.at(node, f"{role}items")))
        own = [self.joined([each], self.at(node, f"{role}{n}")) for n, each in enumerate(items)]
        return self.cells.holding(f"tuple{len(own)}", *own)

    def parts(self, cell: Cell, name: str) -> tuple[Cell, ...]:
        return self.cells.found(cell).parts.get(name, ())

    def item(self, of: Cell, node: ast.AST) -> Cell:
        """The cell of the items of an iterable. node: where it is iterated."""
        found, whole = self.at(node, "item"), self.cells.found(of)
        if whole.is_any:
            self.cells.make_any(found)
        if "str" in whole.kinds:
            self.add(found, "str")
        if any(kind.startswith(MEMBER) for kind in whole.kinds):
            self.cells.make_any(found)
        for name, cells in list(whole.parts.items()):
            if name.startswith(RECORD) and not self.cells.is_row(name):
                self.cells.make_any(found)
                continue
            for cell in cells if self.cells.is_row(name) else cells[:1]:
                self.cells.flow(cell, found)
        return found
