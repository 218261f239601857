"""The types of results of calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from sgc.tracing.inference.cells import DICTS, Cell
from sgc.tracing.inference.places import Known, Scope
from sgc.tracing.inference.records import Records
from sgc.tracing.inference.results import BUILTINS, LIBRARY, METHODS, OF_ANY, result


class Calls(Records):
    """The types of results of calls of functions and methods."""

    def constant(self, module: str, item: str) -> Cell | None:
        """The type of an item of a module that is not a function; None for a function."""
        row = LIBRARY.get(module, {}).get(item, "")
        is_plain = module == "string" or item in ("e", "inf", "nan", "pi", "tau")
        if not row or not is_plain or item == "capwords":
            return None
        return self.cells.new(row)

    def called(self, node: ast.Call, scope: Scope) -> Cell:
        function = node.func
        known = self.function_of(function, scope)
        keywords = [self.of(each.value, scope) for each in node.keywords
                    if not self._is_function(each.value, scope)]  # fmt: skip
        if known is not None:
            return self._own(known, node, scope)
        of = self.enumeration(function, scope)
        if of is not None:
            for each in node.args:
                self.of(each, scope)
            return self.cells.new(of.kind)
        own = self.own_class(function, scope)
        if own is not None:
            return self.made(node, own, scope)
        model = self.called_class(function, scope, node, keywords)
        if model is not None:
            return model
        target = self.target(function, scope)
        if target is None or any(isinstance(each, ast.Starred) for each in node.args):
            return self._method_or_unknown(node, scope, keywords)
        return self._named(node, scope, *target)

    def _is_function(self, node: ast.expr, scope: Scope) -> bool:
        return self.function_of(node, scope) is not None

    def _own(self, known: Known, node: ast.Call, scope: Scope) -> Cell:
        """A call of a function of the code."""
        given = [self.of(each, scope) for each in node.args]
        if any(isinstance(each, ast.Starred) for each in node.args):
            self.called_by_others(known)
            return known.gives
        for each in node.keywords:
            cell = self.of(each.value, scope)
            if each.arg in known.scope.cells:
                self.cells.flow(cell, known.scope.cells[each.arg])
            else:
                self.cells.spoil(cell)
        if any(each.arg is None for each in node.keywords):
            self.called_by_others(known)
        return self.applied(known, given)

    def target(self, function: ast.expr, scope: Scope) -> tuple[str, str] | None:
        """The module ("" for builtins) and name of a function that the tables may have."""
        if isinstance(function, ast.Name) and scope.cell(function.id) is None:
            imported = self.imports.get(function.id)
            if imported is None:
                return "", function.id
            return (imported.module, imported.item) if imported.item else None
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return None
        imported = self.imports.get(function.value.id)
        if imported is None or imported.item or scope.cell(function.value.id) is not None:
            return None
        return imported.module, function.attr

    def _named(self, node: ast.Call, scope: Scope, module: str, name: str) -> Cell:
        special = _LIBRARY.get(f"{module}.{name}") if module else _BUILTINS.get(name)
        given = [
            self.cells.new() if self._is_function(each, scope) else self.of(each, scope)
            for each in node.args
        ]
        if special is not None:
            return special(self, node, scope, given)
        self.call_functions(node, scope, given)
        row = (LIBRARY.get(module, {}) if module else BUILTINS).get(name)
        if row is None:
            for each in given:
                self.cells.spoil(each)
            return self.cells.any()
        return self._given(result(row), self._arguments(node, given), node)

    def call_functions(self, node: ast.Call, scope: Scope, given: Sequence[Cell]) -> None:
        """Passes items of the other arguments to functions that are arguments, such as `key`."""
        functions = [*node.args, *(each.value for each in node.keywords)]
        for each in functions:
            known = self.function_of(each, scope)
            if known is None:
                continue
            items = [self.item(cell, arg) for cell, arg in zip(given, node.args, strict=True)]
            item = self.joined(items, self.at(each, "applied"))
            self.applied(known, [item] * len(known.node.args.args))

    def _method_or_unknown(self, node: ast.Call, scope: Scope, keywords: Sequence[Cell]) -> Cell:
        given = [self.of(each, scope) for each in node.args]
        if not isinstance(node.func, ast.Attribute):
            for each in (*given, *keywords, self.of(node.func, scope)):
                self.cells.spoil(each)
            return self.cells.any()
        return self._method(node, node.func, scope, given, keywords)

    def _method(
        self,
        node: ast.Call,
        function: ast.Attribute,
        scope: Scope,
        given: Sequence[Cell],
        keywords: Sequence[Cell],
    ) -> Cell:
        receiver = self.cells.found(self.of(function.value, scope))
        named = [(each.arg, self.of(each.value, scope)) for each in node.keywords]
        self.call_functions(node, scope, given)
        found = self.at(node, "method")
        is_known = not receiver.is_any and not any(isinstance(e, ast.Starred) for e in node.args)
        for name in receiver.names - {"None"} if is_known else ():
            kind = name.rstrip("0123456789")
            row = METHODS.get(kind, {}).get(function.attr)
            own = self.called_method(name, function.attr, receiver, given, named)
            if own is not None:
                self.cells.flow(own, found)
            elif row is not None:
                env = {**self._arguments(node, given), **self._parts(receiver, name)}
                self.cells.flow(self._given(result(row), env, node), found)
            elif not self._special_method(node, function, receiver, name, given, found):
                is_known = False
        if keywords and receiver.names & DICTS:
            self.cells.spoil(receiver)
        if is_known:
            return found
        row = OF_ANY.get(function.attr)
        for each in (receiver, *given, *keywords):
            self.cells.spoil(each)
        if row is not None:
            given_by = self._given(result(row), {}, node)
            self.loose.append(given_by)  # a user's method may return a part of its object
            return given_by
        self.cells.make_any(found)
        return found

    def _parts(self, receiver: Cell, name: str) -> dict[str, Cell]:
        cells = receiver.parts.get(name, ())
        if name in DICTS:
            return {"K": cells[0], "V": cells[1]}
        return {"T": cells[0]} if cells and not name.startswith("tuple") else {}

    def _special_method(
        self,
        node: ast.Call,
        function: ast.Attribute,
        receiver: Cell,
        name: str,
        given: Sequence[Cell],
        found: Cell,
    ) -> bool:
        """Handles methods that the tables cannot describe; returns whether this is one."""
        if name in DICTS and function.attr == "update" and len(given) < 2:
            key, value = receiver.parts[name]
            for each in given:
                if name == "Counter" and self.cells.found(each).names.isdisjoint(DICTS):
                    self.cells.flow(self.item(each, node.args[0]), key)
                else:
                    self._pairs(each, node.args[0], key, value)
            self.add(found, "None")
            return True
        if name == "Match" and function.attr in ("group", "groups", "groupdict"):
            self.cells.flow(self._groups(node, function.attr, given), found)
            return True
        if name.startswith("Pattern") and function.attr in ("findall", "split"):
            digits = name.removeprefix("Pattern")
            given_by = self._all_found if function.attr == "findall" else self._all_split
            self.cells.flow(given_by(node, int(digits) if digits else None), found)
            return True
        return False

    def _groups(self, node: ast.Call, name: str, given: Sequence[Cell]) -> Cell:
        """The types of a match's groups; any group but 0 is None if it took no part."""
        text = self.joined([self.cells.new("str", "None")], self.at(node, "group"))
        if name == "groups":
            return self.cells.holding("tuple", text)
        if name == "groupdict":
            key = self.joined([self.cells.new("str")], self.at(node, "name"))
            return self.cells.holding("dict", key, text)
        if not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0):
            return self.cells.new("str")
        return text if len(given) == 1 else self.row([text] * len(given), node, "groups")

    def _unchanged(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        return given[0]


_Special = Callable[[Calls, ast.Call, Scope, list[Cell]], Cell]
_BUILTINS: Mapping[str, _Special] = {
    "abs": Calls._rounded, "dict": Calls._made_dict, "divmod": Calls._divided,
    "filter": Calls._filtered, "map": Calls._mapped, "max": Calls._extreme,
    "min": Calls._extreme, "pow": Calls._power, "round": Calls._rounded, "sum": Calls._sum,
    "restored": Calls.restored, "unchanged": Calls._unchanged, "zip": Calls._zipped,
}  # fmt: skip
_LIBRARY: Mapping[str, _Special] = {
    "collections.Counter": Calls._counter, "collections.OrderedDict": Calls._made_dict,
    "collections.defaultdict": Calls._defaultdict, "dataclasses.replace": Calls.replaced,
    "functools.reduce": Calls._reduced,
    "itertools.accumulate": Calls._accumulated, "itertools.chain": Calls._chained,
    "itertools.count": Calls._counted, "itertools.groupby": Calls._grouped,
    "itertools.product": Calls._zipped, "itertools.zip_longest": Calls._zipped,
    "re.compile": Calls._compiled, "re.findall": Calls._findall, "re.split": Calls._split,
}  # fmt: skip
