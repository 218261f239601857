"""The types of results of operators and subscripts."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from sgc.tracing.inference.cells import DICTS, NUMBERS, RECORD, Cell
from sgc.tracing.inference.members import MEMBER
from sgc.tracing.inference.places import Places

_SEQUENCES = frozenset({"str", "list", "deque"})
_SET_OPS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
_OF_DICTS: dict[str, tuple[type[ast.operator], ...]] = {
    "dict": (ast.BitOr,),
    "defaultdict": (ast.BitOr,),
    "Counter": (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr),
}


class Operators(Places):
    """The types of results of operators."""

    def part(self, node: ast.Subscript, of: Cell) -> Cell:
        """The value that a subscript reads."""
        whole, found = self.cells.found(of), self.at(node)
        is_slice = isinstance(node.slice, ast.Slice)
        if whole.is_any:
            self.cells.make_any(found)
        for name in sorted(whole.names):
            cells = whole.parts.get(name, ())
            if name == "str":
                self.add(found, "str")
            elif name == "list" and is_slice:
                self._copied("list", whole, found)
            elif name in ("list", "deque", "range"):
                self.cells.flow(cells[0], found)
            elif name in DICTS:
                self.cells.flow(cells[1], found)
            elif name == "Match":
                is_whole = isinstance(node.slice, ast.Constant) and node.slice.value == 0
                self.cells.flow(self.cells.new("str", *([] if is_whole else ["None"])), found)
            elif name.startswith(MEMBER) or (
                name.startswith(RECORD) and not self.cells.is_row(name)
            ):
                self.cells.make_any(found)
            elif self.cells.is_row(name):
                self._part_of_row(node, cells, name, found)
        return found

    def _part_of_row(
        self, node: ast.Subscript, cells: Sequence[Cell], name: str, found: Cell
    ) -> None:
        index = _constant_int(node.slice)
        if name != "tuple" and index is not None and -len(cells) <= index < len(cells):
            self.cells.flow(cells[index], found)
        elif isinstance(node.slice, ast.Slice):
            item = self.joined(cells, self.at(node, "slice"))
            self.cells.flow(self.cells.holding("tuple", item), found)
        else:
            self.joined(cells, found)

    def operated(self, node: ast.AST, op: ast.operator, left: Cell, right: Cell) -> Cell:
        """The result of a binary operator; empty where Python would raise an error."""
        one, two = self.cells.found(left), self.cells.found(right)
        found = self.at(node, type(op).__name__)
        if isinstance(op, ast.Mod) and one.names == {"str"} and not one.is_any:
            self.add(found, "str")
            return found
        if one.is_any or two.is_any:
            self.cells.make_any(found)
            return found
        for first in sorted(one.names):
            for second in sorted(two.names):
                self._pair(op, (first, one), (second, two), found)
        return found

    def _pair(
        self, op: ast.operator, left: tuple[str, Cell], right: tuple[str, Cell], found: Cell
    ) -> None:
        (one, whole), (two, other) = left, right
        one, two = self.as_number(one), self.as_number(two)
        is_times = isinstance(op, ast.Mult)
        if {one, two} <= NUMBERS:
            kind = _number(op, one, two)
            if kind:
                self.add(found, kind)
            else:
                self.cells.make_any(found)
        elif is_times and (one in _SEQUENCES or two in _SEQUENCES) and {one, two} & {"int", "bool"}:
            name, of = (one, whole) if one in _SEQUENCES else (two, other)
            self._copied(name, of, found)
        elif isinstance(op, ast.Add) and one == two and one in _SEQUENCES:
            self._copied(one, whole, found)
            self._copied(two, other, found)
        elif isinstance(op, _SET_OPS) and one == two == "set":
            self._copied("set", whole, found)
            if not isinstance(op, ast.Sub):
                self._copied("set", other, found)
        elif one == two and one in DICTS and isinstance(op, _OF_DICTS[one]):
            self._copied(one, whole, found)
            self._copied(one, other, found)
        elif "None" not in (one, two):
            self.cells.make_any(found)

    def _copied(self, name: str, of: Cell, found: Cell) -> None:
        """Makes a new container with the items of a container."""
        if name == "str":
            self.add(found, "str")
            return
        if not self.parts(found, name):
            new = (self.cells.new() for _ in of.parts[name])
            self.cells.flow(self.cells.holding(name, *new), found)
        for item, into in zip(of.parts[name], self.parts(found, name), strict=True):
            self.cells.flow(item, into)


def _number(op: ast.operator, one: str, two: str) -> str:
    """The kind of number that an operator returns; empty for a power, which may be of any kind."""
    if isinstance(op, ast.Div):
        return "float"
    if isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
        return "float" if "float" in (one, two) else "int"
    if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)) and one == two == "bool":
        return "bool"
    return "" if isinstance(op, (ast.Pow, ast.MatMult)) else "int"


def _constant_int(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant_int(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int else None
