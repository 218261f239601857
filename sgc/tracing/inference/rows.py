"""Reads the rows of `results.py`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from sgc.tracing.inference.cells import NUMBERS, Cell
from sgc.tracing.inference.operators import Operators
from sgc.tracing.inference.results import Result

Env = Mapping[str, Cell]
_OBJECTS = frozenset({"Match", "Pattern", "Random"})


class Rows(Operators):
    """The cells of results, by the rows of the tables."""

    def _given(self, row: Result, env: Env, node: ast.AST) -> Cell:
        for into, source in row.effects:
            if source in env and into in env:
                self.cells.flow(env[source], env[into])
        return self._type(row.gives, env, node, "gives")

    def _type(self, of: ast.expr, env: Env, node: ast.AST, role: str) -> Cell:
        """The cell of a type in a row of the tables."""
        if isinstance(of, ast.Constant):
            return self.cells.new("None")
        if isinstance(of, ast.Name):
            if of.id == "any":
                return self.cells.any()
            if of.id in _OBJECTS:
                return self.cells.holding(of.id)
            is_kind = of.id in NUMBERS or of.id == "str"
            return self.cells.new(of.id) if is_kind else env.get(of.id) or self.cells.new()
        if isinstance(of, ast.BinOp):
            sides = (self._type(each, env, node, f"{role}|") for each in (of.left, of.right))
            return self.joined(sides, self.at(node, role))
        assert isinstance(of, ast.Subscript)
        assert isinstance(of.value, ast.Name)
        parts = of.slice.elts if isinstance(of.slice, ast.Tuple) else [of.slice]
        name = of.value.id
        if name == "tuple" and not isinstance(parts[-1], ast.Constant):
            name = f"tuple{len(parts)}"
        cells = []
        for n, each in enumerate(parts):
            if not isinstance(each, ast.Constant) or each.value is None:
                part = self._type(each, env, node, f"{role}{n}")
                cells.append(self.joined([part], self.at(node, f"{role}{n}.")))
        return self.cells.holding(name, *cells)

    def _arguments(self, node: ast.Call, given: Sequence[Cell]) -> dict[str, Cell]:
        """The values of a row's letters, from a call's arguments."""
        env = {}
        for n, cell in enumerate(given):
            env[f"A{n}"] = env[f"D{n}"] = env[f"R{n}"] = cell
            env[f"I{n}"] = self.item(cell, node.args[n])
            for name in ("list", "deque"):
                env |= {f"T{n}": part for part in self.parts(cell, name)}
        if len(given) < 2:
            env["D1"] = self.cells.new("None")
        return env
