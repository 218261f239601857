"""The types of results of library functions that `results.py` cannot describe."""

from __future__ import annotations

import ast
import re

from sgc.tracing.inference.builtin_calls import BuiltinCalls
from sgc.tracing.inference.cells import DICTS, Cell
from sgc.tracing.inference.places import Scope


class LibraryCalls(BuiltinCalls):
    """The types of results of library functions."""

    def _counter(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        key, value = self.at(node, "key"), self.at(node, "value")
        self.add(value, "int")
        for each in given[:1]:
            found = self.cells.found(each)
            if found.names & DICTS:
                self._pairs(each, node.args[0], key, value)
            else:
                self.cells.flow(self.item(each, node.args[0]), key)
        if node.keywords:
            self.add(key, "str")
            self.cells.make_any(value)
        return self.cells.holding("Counter", key, value)

    def _defaultdict(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        key, value = self.at(node, "key"), self.at(node, "value")
        if node.args:
            self.cells.flow(self._factory(node, node.args[0], scope), value)
        for each in given[1:2]:
            self._pairs(each, node.args[1], key, value)
        if node.keywords or len(node.args) > 2:
            self.cells.make_any(value)
        return self.cells.holding("defaultdict", key, value)

    def _factory(self, node: ast.Call, factory: ast.expr, scope: Scope) -> Cell:
        known = self.function_of(factory, scope)
        if known is not None:
            return self.applied(known, [])
        given = factory.args if isinstance(factory, ast.Call) else []
        if len(given) == 1 and getattr(factory.func, "id", "") == "always":  # type: ignore[attr-defined]
            return self.of(given[0], scope)
        is_free = isinstance(factory, ast.Name) and scope.cell(factory.id) is None
        name = factory.id if isinstance(factory, ast.Name) and is_free else ""
        if name in ("int", "float", "str", "bool"):
            return self.cells.new(name)
        if name in ("list", "set", "deque"):
            return self.cells.holding(name, self.at(factory, "items"))
        if name == "dict":
            key, value = self.at(factory, "key"), self.at(factory, "value")
            return self.cells.holding("dict", key, value)
        return self.cells.any()

    def _reduced(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        for each in given:
            self.cells.spoil(each)
        self.of(node.args[0], scope)
        return self.cells.any()

    def _accumulated(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        if len(given) != 1 or node.keywords:
            return self._reduced(node, scope, given)
        item = self.item(given[0], node)
        is_sum = self._kinds(item) in ({"str"}, {"int"}, {"float"}, set())
        return self._iter(item, node) if is_sum else self._reduced(node, scope, given)

    def _chained(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        items = [self.item(cell, arg) for cell, arg in zip(given, node.args, strict=True)]
        return self.cells.holding("iter", self.joined(items, self.at(node, "of")))

    def _counted(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        kinds = {kind for each in given for kind in self._kinds(each)} | {"int"}
        return self._iter(self._numbers(kinds), node)

    def _grouped(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        item = self.item(given[0], node) if given else self.cells.new()
        has_key = len(node.args) > 1 or bool(node.keywords)
        key = item
        if has_key:
            function = node.args[1] if len(node.args) > 1 else node.keywords[0].value
            key = self._applied(node, function, [item], scope)
        group = self.cells.holding("iter", item)
        return self._iter(self.row([key, group], node), node)

    def _compiled(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        n_groups = _groups_of(node.args[0] if node.args else None)
        return self.cells.holding("Pattern" if n_groups is None else f"Pattern{n_groups}")

    def _findall(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        return self._all_found(node, _groups_of(node.args[0] if node.args else None))

    def _all_found(self, node: ast.Call, n_groups: int | None) -> Cell:
        if n_groups is None:
            return self.cells.any()
        item = self.cells.new("str")
        if n_groups > 1:
            item = self.row([item] * n_groups, node)
        return self.cells.holding("list", self.joined([item], self.at(node, "of")))

    def _split(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        return self._all_split(node, _groups_of(node.args[0] if node.args else None))

    def _all_split(self, node: ast.Call, n_groups: int | None) -> Cell:
        if n_groups is None:
            return self.cells.any()
        kinds = ("str", "None") if n_groups else ("str",)
        item = self.joined([self.cells.new(*kinds)], self.at(node, "of"))
        return self.cells.holding("list", item)


def _groups_of(pattern: ast.expr | None) -> int | None:
    """The number of groups of a pattern that the code writes out."""
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
        return None
    try:
        return re.compile(pattern.value).groups
    except re.error:
        return None
