"""Infers the type of a result of code from its syntax: a text, a number, a list of pairs.

If no type is certain, the result is a value of any type. Errors here are safe: the executor refuses
a result of another type than the graph says (`ir/code_types.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sgc.ir.code import Code
from sgc.ir.types import Type
from sgc.tracing.inference.cells import DICTS, Cell
from sgc.tracing.inference.expressions import Expressions
from sgc.tracing.inference.places import Function, Known, Scope
from sgc.tracing.inference.records import has_values
from sgc.tracing.kinds.row_types import OBJECT, DictType
from sgc.tracing.pieces.names import names_of, parameters

MAX_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Inferred:
    """What is known of the result of code. type: the result's type; items: the types of the items,
    if the code returns a list display; shared: the arguments, by number, of which the result may be
    or hold a list, dict or set; may_share: whether there is such an argument or constant of the
    code; has_iterator: whether the result or one of the items may be an iterator, which is not
    data; is_set: whether the result is a set; may_be: for the result and for each item, the
    arguments, by number, that it may be if it is a list that the code has not made, None if it may
    be another list; dicts: the types of the result and of the items that are dicts of plain values.
    """

    type: Type
    items: tuple[Type, ...]
    shared: frozenset[int]
    may_share: bool
    has_iterator: bool
    is_set: bool = False
    may_be: tuple[frozenset[int] | None, ...] = ()
    dicts: tuple[DictType | None, ...] = ()


@lru_cache(maxsize=1024)  # repeated runs of a trace call it again
def inferred(code: Code, given: tuple[Type, ...]) -> Inferred:
    """What is known of the code's result for arguments of these types."""
    inference = Inference(code)
    last = code.entry.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    items = value.elts if isinstance(value, ast.List) else []
    whole = inference.returned(given)
    if whole is None:
        every = frozenset(range(len(given)))
        may_be = (None,) * (1 + len(items))
        return Inferred(OBJECT, (OBJECT,) * len(items), every, True, False, may_be=may_be)
    cells = inference.cells
    found = [inference.of(each, inference.entry_scope) for each in items]
    held = cells.parts_of([whole])
    is_any = any(each.is_any for each in (cells.found(whole), *held))

    def may_hold(others: Iterable[Cell]) -> bool:
        return is_any or not held.isdisjoint(cells.parts_of(others))

    shared = frozenset(n for n, each in enumerate(inference.given) if may_hold([each]))
    return Inferred(
        cells.type_of(whole),
        tuple(map(cells.type_of, found)),
        shared,
        may_share=bool(shared) or may_hold(inference.module.cells.values()),
        has_iterator=any("iter" in cells.found(each).parts for each in (whole, *found)),
        is_set=cells.found(whole).names == {"set"} and not cells.found(whole).is_any,
        may_be=(inference.may_be(whole, ()), *_may_be_each(inference, found)),
        dicts=tuple(map(cells.dict_type_of, (whole, *found))),
    )


def _may_be_each(inference: Inference, items: list[Cell]) -> Iterator[frozenset[int] | None]:
    for n, each in enumerate(items):
        yield inference.may_be(each, [*items[:n], *items[n + 1 :]])


class Inference(Expressions):
    """The types of all expressions of some code, as cells that grow until nothing changes."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self._known: dict[int, Known] = {}
        self._scopes: dict[int, Scope] = {}
        self.module = Scope(None)
        self.entry_scope = self.module
        self.given: list[Cell] = []

    def returned(self, given: Sequence[Type]) -> Cell | None:
        """The cell of the entry's result; None if the cells do not settle."""
        for each in self.code.constants:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in targets:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name):
                        self.module.cells[node.id] = self.cells.new()
        self.read_classes()
        for function in self.code.functions:
            self.module.functions[function.name] = self.known(function, self.module)
        entry = self.module.functions[self.code.entry.name]
        self.entry_scope = entry.scope
        args = self.code.entry.args
        for name, type_ in zip((*args.posonlyargs, *args.args), given, strict=True):
            self.given.append(self.cells.of_type(type_))
            self.cells.flow(self.given[-1], entry.scope.cells[name.arg])
        for _ in range(MAX_ROUNDS):
            before = self.cells.n_changes
            self._block(self.code.constants, self.module, None)
            for known in list(self._known.values()):
                self._body(known)
            if self.cells.n_changes == before:
                return entry.gives
        return None

    def may_be(self, value: Cell, others: Iterable[Cell]) -> frozenset[int] | None:
        """The arguments that a list may be, if the code has not made it; None if the list may be a
        part of an argument, a constant, or a part of `others`. A list is recognized by the cells of
        its items.
        """
        cells = self.cells
        own, found = cells.items_of([value]), cells.found(value)
        kept = [*cells.items_of(self.given), *self.module.cells.values(), *self.loose, *others]
        if found.is_any or not own or not own.isdisjoint(cells.parts_of(kept)):
            return None
        if any(isinstance(each, ast.ClassDef) and has_values(each) for each in self.code.body):
            return None
        of = (n for n, each in enumerate(self.given) if own & cells.items_of([each]))
        return frozenset(of)

    def known(self, node: Function, outer: Scope) -> Known:
        known = self._known.get(id(node))
        if known is None:
            body = node.body if isinstance(node.body, list) else [node.body]
            names = names_of(body)
            own = (names.writes | parameters(node.args)) - names.outer
            scope = Scope(outer, {name: self.cells.new() for name in sorted(own)})
            gives = self.cells.new()
            if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in _of_scope(body)):
                scope.items = self.cells.new()
                gives = self.cells.holding("iter", scope.items)
            known = self._known[id(node)] = Known(node, scope, gives)
        return known

    def _body(self, known: Known) -> None:
        node, scope = known.node, known.scope
        args = node.args
        for parameter, default in (
            *zip((*args.posonlyargs, *args.args)[::-1], args.defaults[::-1], strict=False),
            *zip(args.kwonlyargs, args.kw_defaults, strict=True),
        ):
            if default is not None:
                assert scope.outer is not None
                found = self.of(default, scope.outer)
                self.loose.append(found)  # shared by all calls
                self.cells.flow(found, scope.cells[parameter.arg])
        for rest in filter(None, (args.vararg, args.kwarg)):
            self.cells.make_any(scope.cells[rest.arg])
        if isinstance(node, ast.Lambda):
            self.cells.flow(self.of(node.body, scope), known.gives)
            return
        self._block(node.body, scope, known)
        if not _ends(node.body) and scope.items is None:
            self.add(known.gives, "None")

    def function_of(self, node: ast.expr, scope: Scope) -> Known | None:
        """The function to which an expression refers, if its code is known."""
        if isinstance(node, ast.Lambda):
            return self.known(node, scope)
        return scope.function(node.id) if isinstance(node, ast.Name) else None

    def applied(self, known: Known, given: Sequence[Cell]) -> Cell:
        """The result of a function for positional arguments."""
        args = known.node.args
        places = [each.arg for each in (*args.posonlyargs, *args.args)]
        for name, cell in zip(places, given, strict=False):
            self.cells.flow(cell, known.scope.cells[name])
        for cell in given[len(places) :]:
            self.cells.spoil(cell)
        return known.gives

    def called_by_others(self, known: Known) -> None:
        """Notes that unknown code may call a function with any arguments."""
        for name in parameters(known.node.args):
            self.cells.make_any(known.scope.cells[name])
        self.cells.spoil(known.gives)

    def _block(self, body: Iterable[ast.stmt], scope: Scope, known: Known | None) -> None:
        for node in body:
            self._statement(node, scope, known)

    def _statement(self, node: ast.stmt, scope: Scope, known: Known | None) -> None:
        if isinstance(node, ast.Return):
            assert known is not None
            found = self.cells.new("None") if node.value is None else self.of(node.value, scope)
            if scope.items is None:
                self.cells.flow(found, known.gives)
        elif isinstance(node, ast.FunctionDef):
            if scope.cells.pop(node.name, None) is not None and not node.decorator_list:
                scope.functions[node.name] = self.known(node, scope)
            elif node.name not in scope.functions:
                scope.cells[node.name] = self.cells.any()
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.bind(target, self.of(node.value, scope), scope, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.bind(node.target, self.of(node.value, scope), scope, node.value)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node, scope)
        elif isinstance(node, ast.For):
            self.bind(node.target, self.item(self.of(node.iter, scope), node), scope)
            self._block((*node.body, *node.orelse), scope, known)
        elif isinstance(node, ast.Match):
            self._match(node, scope, known)
        else:
            self._others(node, scope, known)

    def _others(self, node: ast.AST, scope: Scope, known: Known | None) -> None:
        """Handles any other statement: its expressions and blocks."""
        name = getattr(node, "name", None)
        if isinstance(node, ast.ExceptHandler) and name:
            self.cells.make_any(scope.cells[name])
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.of(child, scope)
            elif isinstance(child, ast.stmt):
                self._statement(child, scope, known)
            else:
                self._others(child, scope, known)

    def _match(self, node: ast.Match, scope: Scope, known: Known | None) -> None:
        """Handles a `match`: a pattern may bind any part of the subject to a name."""
        self.cells.spoil(self.of(node.subject, scope))
        for case in node.cases:
            for inner in ast.walk(case.pattern):
                bound = getattr(inner, "name", None) or getattr(inner, "rest", None)
                if isinstance(bound, str):
                    self.cells.make_any(scope.cells[bound])
            if case.guard is not None:
                self.of(case.guard, scope)
            self._block(case.body, scope, known)

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            before = scope.cell(target.id) or self.cells.any()
        else:
            before = self.of(target, scope)
        value = self.of(node.value, scope)
        for name in ("list", "deque", "set"):  # `+=` and `|=` change these
            for cell in self.parts(before, name):
                self.cells.flow(self.item(value, node), cell)
        if not self.cells.found(before).names.isdisjoint(DICTS):
            self.cells.spoil(before)
        self.bind(target, self.operated(node, node.op, before, value), scope)


def _of_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function's body, without the nodes of inner functions."""
    left = list(body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            left += ast.iter_child_nodes(node)


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a function always ends in a `return` or `raise`."""
    last = body[-1] if body else None
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    if isinstance(last, ast.Try):
        blocks = [last.orelse or last.body, *(each.body for each in last.handlers)]
        return _ends(last.finalbody) or all(map(_ends, blocks))
    return False
