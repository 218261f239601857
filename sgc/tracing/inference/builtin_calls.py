"""The types of results of builtins that `results.py` cannot describe."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence

from sgc.tracing.inference.cells import DICTS, NUMBERS, Cell
from sgc.tracing.inference.places import Scope
from sgc.tracing.inference.results import BUILTINS, METHODS, result
from sgc.tracing.inference.rows import Rows


class BuiltinCalls(Rows):
    """The types of results of builtins."""

    @abstractmethod
    def target(self, function: ast.expr, scope: Scope) -> tuple[str, str] | None:
        """The module ("" for builtins) and name of a function that the tables may have."""

    @abstractmethod
    def call_functions(self, node: ast.Call, scope: Scope, given: Sequence[Cell]) -> None:
        """Passes items of the other arguments to functions that are arguments, such as `key`."""

    def _kinds(self, cell: Cell) -> set[str]:
        found = self.cells.found(cell)
        return {"any"} if found.is_any else {*map(self.as_number, found.names)}

    def _numbers(self, kinds: set[str]) -> Cell:
        """Numbers of these kinds; a bool counts as an int."""
        if kinds - NUMBERS - {"None"}:
            return self.cells.any()
        return self.cells.new(*("int" if kind == "bool" else kind for kind in kinds & NUMBERS))

    def _rounded(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        kinds = self._kinds(given[0]) if given else {"any"}
        is_round = isinstance(node.func, ast.Name) and node.func.id == "round"
        if is_round and len(given) == 1 and not node.keywords and kinds <= NUMBERS:
            return self.cells.new("int")
        is_plain = len(given) == 1 + is_round and not node.keywords
        return self._numbers(kinds if is_plain else {"any"})

    def _divided(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        if len(given) != 2:
            return self.cells.any()
        parts = [self.operated(node, op, *given) for op in (ast.FloorDiv(), ast.Mod())]
        return self.row(parts, node)

    def _power(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        return self.cells.any()

    def _extreme(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        """`max` and `min`: an item, or one of several arguments."""
        self.call_functions(node, scope, given)
        if not {each.arg for each in node.keywords} <= {"key", "default"}:
            return self.cells.any()
        found = [self.item(given[0], node)] if len(given) == 1 else given
        default = [self.of(each.value, scope) for each in node.keywords if each.arg == "default"]
        return self.joined([*found, *default], self.at(node))

    def _sum(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        if not given or node.keywords or len(given) > 2:
            return self.cells.any()
        start = self._kinds(given[1]) if len(given) == 2 else {"int"}
        kinds = self._kinds(self.item(given[0], node))
        if not (start | kinds) <= NUMBERS:
            return self.cells.any()
        if start == {"float"}:
            return self.cells.new("float")
        return self._numbers(start | kinds)  # without floats, an int

    def _made_dict(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        key, value = self.at(node, "key"), self.at(node, "value")
        for each in given[:1]:
            self._pairs(each, node.args[0], key, value)
        for word in node.keywords:
            self.cells.flow(self.of(word.value, scope), value)
            if word.arg is None:
                self.cells.make_any(value)
            self.add(key, "str")
        return self.cells.holding("dict", key, value)

    def _pairs(self, of: Cell, node: ast.AST, key: Cell, value: Cell) -> None:
        """Puts a dict, or an iterable of pairs, into a dict."""
        whole = self.cells.found(of)
        for name in DICTS & whole.parts.keys():
            for cell, into in zip(whole.parts[name], (key, value), strict=True):
                self.cells.flow(cell, into)
        if not whole.is_any and whole.names <= DICTS:
            return
        item = self.cells.found(self.item(of, node))
        row = item.parts.get("tuple2", ())
        is_pair = not item.is_any and item.names == {"tuple2"}
        for n, into in enumerate((key, value)):
            if is_pair:
                self.cells.flow(row[n], into)
            elif item.is_any or item.names:
                self.cells.make_any(into)

    def _zipped(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        """`zip`, `product` and `zip_longest`."""
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        items = [self.item(cell, arg) for cell, arg in zip(given, node.args, strict=True)]
        if name == "zip_longest":
            fill = [self.of(each.value, scope) for each in node.keywords]
            fill = fill or [self.cells.new("None")]
            items = [
                self.joined([each, *fill], self.at(node, f"filled{n}"))
                for n, each in enumerate(items)
            ]
        elif name == "product" and node.keywords:
            return self.cells.any()
        return self._iter(self.row(items, node), node)

    def _iter(self, item: Cell, node: ast.AST) -> Cell:
        return self.cells.holding("iter", self.joined([item], self.at(node, "of")))

    def _mapped(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        if len(node.args) < 2:
            return self.cells.any()
        items = [self.item(cell, arg) for cell, arg in zip(given, node.args, strict=True)][1:]
        return self._iter(self._applied(node, node.args[0], items, scope), node)

    def _applied(
        self, node: ast.Call, function: ast.expr, given: Sequence[Cell], scope: Scope
    ) -> Cell:
        """The result of a function that is an argument."""
        known = self.function_of(function, scope)
        if known is not None:
            return self.applied(known, given)
        target = self.target(function, scope)
        row = None
        if target is not None and not target[0]:
            row = BUILTINS.get(target[1])
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            row = METHODS["str"].get(function.attr) if function.value.id == "str" else row
        if row is None or "A" in row or "I" in row:
            for each in given:
                self.cells.spoil(each)
            return self.cells.any()
        return self._given(result(row), {}, function)

    def _filtered(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        if len(given) != 2:
            return self.cells.any()
        item = self.item(given[1], node)
        self._applied(node, node.args[0], [item], scope)
        return self._iter(item, node)
