"""The types of expressions, and of values bound to targets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from sgc.tracing.inference.calls import Calls
from sgc.tracing.inference.cells import DICTS, NUMBERS, Cell
from sgc.tracing.inference.places import Scope
from sgc.tracing.pieces.names import names_of


class Expressions(Calls):
    """The types of expressions."""

    _scopes: dict[int, Scope]  # of comprehensions

    def bind(
        self, target: ast.expr, value: Cell, scope: Scope, node: ast.expr | None = None
    ) -> None:
        """Assigns a value to a target. node: the value's expression."""
        if isinstance(target, ast.Name):
            cell = scope.cell(target.id)
            if cell is not None:
                self.cells.flow(value, cell)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, scope)
        elif isinstance(target, ast.Subscript):
            self._put(target, value, scope)
        elif isinstance(target, ast.Starred):
            rest = self.at(target, "rest")
            self.cells.flow(self.cells.holding("list", self.item(value, target)), rest)
            self.bind(target.value, rest, scope)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(target, value, scope)
        else:
            self.cells.spoil(value)

    def _unpack(self, target: ast.Tuple | ast.List, value: Cell, scope: Scope) -> None:
        has_star = any(isinstance(each, ast.Starred) for each in target.elts)
        whole = self.cells.found(value)
        kinds = [*(whole.names - {"None"})]
        is_row = len(kinds) == 1 and kinds[0] != "tuple" and self.cells.is_row(kinds[0])
        row = whole.parts[kinds[0]] if is_row and not has_star else ()
        if len(row) == len(target.elts) and not whole.is_any:
            for each, cell in zip(target.elts, row, strict=True):
                self.bind(each, cell, scope)
            return
        item = self.item(value, target)
        for each in target.elts:
            self.bind(each, value if isinstance(each, ast.Starred) else item, scope)

    def _put(self, target: ast.Subscript, value: Cell, scope: Scope) -> None:
        whole, key = self.of(target.value, scope), self.of(target.slice, scope)
        if isinstance(target.slice, ast.Slice):
            value = self.item(value, target)
        for name in ("list", "deque"):
            for cell in self.parts(whole, name):
                self.cells.flow(value, cell)
        for name in sorted(DICTS):
            for cell, found in zip(self.parts(whole, name), (key, value), strict=False):
                self.cells.flow(found, cell)
        if self.cells.found(whole).is_any:
            self.cells.spoil(value)

    def of(self, node: ast.expr, scope: Scope) -> Cell:
        """The cell of an expression; evaluates its parts."""
        if isinstance(node, ast.Name):
            return self._name(node, scope)
        found = self.at(node)
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            self.cells.flow(handler(self, node, scope), found)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.cells.spoil(self.of(child, scope))
            self.cells.make_any(found)
        return found

    def _name(self, node: ast.Name, scope: Scope) -> Cell:
        cell = scope.cell(node.id)
        if cell is not None:
            return cell
        of = self.enumeration(node, scope)
        if of is not None:  # an enumeration, as an iterable of its members
            return self.cells.holding("list", self.cells.new(of.kind))
        known = scope.function(node.id)
        if known is not None:
            self.called_by_others(known)
        imported = self.imports.get(node.id)
        if imported is not None and imported.item is not None:
            found = self.constant(imported.module, imported.item)
            if found is not None:
                return found
        found = self.at(node)
        self.cells.make_any(found)
        return found

    def _constant(self, node: ast.Constant, scope: Scope) -> Cell:
        kind = "None" if node.value is None else type(node.value).__name__
        is_known = kind in ("str", "int", "float", "bool", "None")
        return self.cells.new(kind) if is_known else self.cells.any()

    def _text(self, node: ast.JoinedStr, scope: Scope) -> Cell:
        for child in ast.walk(node):
            if isinstance(child, ast.FormattedValue):
                self.of(child.value, scope)
        return self.cells.new("str")

    def _compare(self, node: ast.Compare, scope: Scope) -> Cell:
        for child in (node.left, *node.comparators):
            self.of(child, scope)
        return self.cells.new("bool")

    def _either(self, node: ast.BoolOp, scope: Scope) -> Cell:
        found = [self.of(each, scope) for each in node.values]
        # `a or b` is `a` only if `a` is true, and so never None.
        last = len(found) - 1 if isinstance(node.op, ast.Or) else -1
        return self.joined(
            [self._truthy(each, node, n) if n < last else each for n, each in enumerate(found)],
            self.at(node),
        )

    def _truthy(self, cell: Cell, node: ast.AST, n: int) -> Cell:
        whole = self.cells.found(cell)
        if "None" not in whole.kinds:
            return cell
        found = self.at(node, f"truthy{n}")
        rest = self.cells.new(*(whole.kinds - {"None"}))
        rest.parts, rest.is_any = dict(whole.parts), whole.is_any
        self.cells.flow(rest, found)
        return found

    def _choice(self, node: ast.IfExp, scope: Scope) -> Cell:
        self.of(node.test, scope)
        return self.joined(
            [self.of(each, scope) for each in (node.body, node.orelse)], self.at(node)
        )

    def _walrus(self, node: ast.NamedExpr, scope: Scope) -> Cell:
        found = self.of(node.value, scope)
        self.bind(node.target, found, scope)
        return found

    def _binary(self, node: ast.BinOp, scope: Scope) -> Cell:
        return self.operated(node, node.op, self.of(node.left, scope), self.of(node.right, scope))

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Cell:
        found = self.cells.found(self.of(node.operand, scope))
        if isinstance(node.op, ast.Not):
            return self.cells.new("bool")
        kinds = {*map(self.as_number, found.kinds)}
        if found.is_any or found.parts or not kinds <= NUMBERS | {"None"}:
            return self.cells.any()
        return self.cells.new(*("int" if of == "bool" else of for of in kinds & NUMBERS))

    def _display(self, node: ast.List | ast.Set, scope: Scope) -> Cell:
        item = self.at(node, "items")
        self._gather(node.elts, item, scope)
        return self.cells.holding(type(node).__name__.lower(), item)

    def _gather(self, elements: Iterable[ast.expr], into: Cell, scope: Scope) -> None:
        for each in elements:
            if isinstance(each, ast.Starred):
                self.cells.flow(self.item(self.of(each.value, scope), each), into)
            else:
                self.cells.flow(self.of(each, scope), into)

    def _row(self, node: ast.Tuple, scope: Scope) -> Cell:
        if any(isinstance(each, ast.Starred) for each in node.elts):
            item = self.at(node, "items")
            self._gather(node.elts, item, scope)
            return self.cells.holding("tuple", item)
        return self.row([self.of(each, scope) for each in node.elts], node)

    def _dict(self, node: ast.Dict, scope: Scope) -> Cell:
        key, value = self.at(node, "key"), self.at(node, "value")
        for each, given in zip(node.keys, node.values, strict=True):
            found = self.of(given, scope)
            if each is None:
                self._update(found, (key, value))
            else:
                self.cells.flow(self.of(each, scope), key)
                self.cells.flow(found, value)
        return self.cells.holding("dict", key, value)

    def _update(self, other: Cell, into: Sequence[Cell]) -> None:
        """Puts a dict's items into another dict."""
        whole = self.cells.found(other)
        for name in sorted(DICTS):
            for cell, target in zip(whole.parts.get(name, ()), into, strict=False):
                self.cells.flow(cell, target)
        if whole.is_any or not whole.names <= DICTS | {"None"}:
            for target in into:
                self.cells.make_any(target)

    def _comprehension(self, node: ast.expr, scope: Scope) -> Cell:
        assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
        inner = self._scopes.get(id(node))
        if inner is None:
            targets = names_of([each.target for each in node.generators]).writes
            inner = Scope(scope, {name: self.cells.new() for name in sorted(targets)})
            self._scopes[id(node)] = inner
        for n, each in enumerate(node.generators):
            over = self.of(each.iter, inner if n else scope)
            self.bind(each.target, self.item(over, each), inner)
            for test in each.ifs:
                self.of(test, inner)
        if isinstance(node, ast.DictComp):
            key, value = self.at(node, "key"), self.at(node, "value")
            self.cells.flow(self.of(node.key, inner), key)
            self.cells.flow(self.of(node.value, inner), value)
            return self.cells.holding("dict", key, value)
        name = {ast.ListComp: "list", ast.SetComp: "set"}.get(type(node), "iter")
        item = self.at(node, "items")
        self.cells.flow(self.of(node.elt, inner), item)
        return self.cells.holding(name, item)

    def _part(self, node: ast.Subscript, scope: Scope) -> Cell:
        whole = self.of(node.value, scope)
        if not isinstance(node.slice, ast.Slice):
            self.of(node.slice, scope)
        else:
            for each in filter(None, (node.slice.lower, node.slice.upper, node.slice.step)):
                self.of(each, scope)
        return self.part(node, whole)

    def _call(self, node: ast.Call, scope: Scope) -> Cell:
        return self.called(node, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Cell:
        if isinstance(node.value, ast.Name) and scope.cell(node.value.id) is None:
            imported = self.imports.get(node.value.id)
            if imported is not None and imported.item is None:
                found = self.constant(imported.module, node.attr)
                return self.cells.any() if found is None else found
        of = self.enumeration(node.value, scope)
        if of is not None:
            return self.cells.new(of.kind) if node.attr in of.members else self.cells.any()
        return self.attribute(node, self.of(node.value, scope))

    def _yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Cell:
        given = self.cells.new("None") if node.value is None else self.of(node.value, scope)
        if isinstance(node, ast.YieldFrom):
            given = self.item(given, node)
        assert scope.items is not None
        self.cells.flow(given, scope.items)
        return self.cells.any()

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Cell:
        self.called_by_others(self.known(node, scope))
        return self.cells.any()


_HANDLERS: dict[type[ast.expr], Callable[..., Cell]] = {
    ast.Constant: Expressions._constant,
    ast.JoinedStr: Expressions._text,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._either,
    ast.IfExp: Expressions._choice,
    ast.NamedExpr: Expressions._walrus,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.List: Expressions._display,
    ast.Set: Expressions._display,
    ast.Tuple: Expressions._row,
    ast.Dict: Expressions._dict,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.Subscript: Expressions._part,
    ast.Call: Expressions._call,
    ast.Attribute: Expressions._attribute,
    ast.Lambda: Expressions._lambda,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield,
}
