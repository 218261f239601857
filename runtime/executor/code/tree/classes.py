"""Class statements, `super()` and stores of attributes as closures over a frame."""

from __future__ import annotations

import ast
import enum
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from sgc.ir.code_classes import (
    DATACLASS,
    ENUMS,
    MIXED,
    MODEL,
    NAMED_TUPLE,
    ORDERED,
    is_class_variable,
)
from sgc.runtime.executor.code.classes.closure import Closure
from sgc.runtime.executor.code.classes.making import Plan, made
from sgc.runtime.executor.code.fuel import Run
from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Do,
    Ev,
    Names,
    compile_expression,
    compile_module,
    on_statement,
    weight_of,
)
from sgc.runtime.executor.code.tree.expressions import constant, imported
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame, Scope
from sgc.runtime.executor.code.tree.statements import compile_function
from sgc.runtime.executor.code.tree.targets import place_of, store_name
from sgc.runtime.executor.interface.records import Bound


class Part(NamedTuple):
    """A statement of a class. slots: the slots of the names that it binds in the class's frame."""

    names: tuple[str, ...]
    slots: tuple[int, ...]
    value: Ev
    is_method: bool


@on_statement(ast.ClassDef)
def _class(node: ast.ClassDef, at: Context) -> Do:
    closure = at.names.uses.closure(node.name)
    key = sys.intern(closure.key)
    at.names.classes[node.name] = key
    scope = Scope(at.scope, node.name, owner=key)
    within = Context(scope, at.names)
    parts = [part for each in node.body if (part := _part(each, within)) is not None]
    bases = [_base(each, at) for each in node.bases]
    cost = 100 + weight_of(*(each for each in node.body if not isinstance(each, ast.Pass)))
    plan = _plan(node, key, loader(key, closure, at.names), at)
    store = store_name(place_of(node.name, at))

    def define(f: Frame) -> None:
        run: Run = f[0]
        if key not in run.classes:
            run.charge(cost)
            methods, values = _evaluated(parts, [run, f[1], *[UNSET] * (scope.n_slots - 2)])
            # `dataclass` reads attributes of the class that it makes.
            run.classes[key] = bound = Bound(None, methods, values)
            try:
                bound.kind = made(plan, tuple([base(f) for base in bases]), values)
            except BaseException:
                del run.classes[key]
                raise
        store(f, run.classes[key].kind)

    return define


def _plan(node: ast.ClassDef, key: str, load: Callable[[Run], Bound], at: Context) -> Plan:
    options, found = None, [imported(each, at) for each in node.decorator_list]
    for each in node.decorator_list[ORDERED in found :]:
        assert imported(each.func if isinstance(each, ast.Call) else each, at) == DATACLASS
        options = {}
        for keyword in each.keywords if isinstance(each, ast.Call) else ():
            assert keyword.arg is not None
            assert isinstance(keyword.value, ast.Constant)
            options[keyword.arg] = bool(keyword.value.value)
    methods = {
        each.name: "".join(ast.unparse(by) for by in each.decorator_list)
        for each in node.body
        if isinstance(each, ast.FunctionDef)
    }
    annotated = {
        each.target.id: is_class_variable(each.annotation)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return Plan(node.name, key, load, options, methods, annotated, ORDERED in found)


def _base(node: ast.expr, at: Context) -> Ev:
    found = imported(node, at)
    if isinstance(node, ast.Name) and node.id in MIXED and at.scope.find(node.id) is None:
        return constant(MIXED[node.id])
    if found == NAMED_TUPLE:
        return constant(NamedTuple)
    if found == MODEL:
        return constant(at.names.values(MODEL.module, MODEL.item or ""))
    if found in ENUMS:
        return constant(getattr(enum, found.item or ""))
    return compile_expression(node, at)


def _part(node: ast.stmt, at: Context) -> Part | None:
    if isinstance(node, ast.FunctionDef):
        value = compile_function(node, at)
        slot = at.scope.add(node.name, False).slot
        return Part((node.name,), (slot,), value, is_method=True)
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        value = compile_expression(node.value, at)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = tuple(each.id for each in targets if isinstance(each, ast.Name))
        slots = tuple(at.scope.add(name, False).slot for name in names)
        return Part(names, slots, value, is_method=False)
    return None


def _evaluated(parts: list[Part], own: Frame) -> tuple[dict[str, Any], dict[str, Any]]:
    """The methods and the attributes of a class in a run. own: the frame of the class."""
    methods: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for names, slots, value, is_method in parts:
        found = value(own)
        for name, slot in zip(names, slots, strict=True):
            own[slot] = found
            (methods if is_method else values)[name] = found
    return methods, values


def loader(key: str, closure: Closure, names: Names) -> Callable[[Run], Bound]:
    """A function that brings a class into a run of a module that does not define the class."""
    module: list[Callable[[Run], Frame]] = []

    def load(run: Run) -> Bound:
        if not module:
            own = Names(closure.imports, names.values, closure.body)
            module.append(compile_module(closure.body, own)[1])
        module[0](run)
        found: Bound = run.classes[key]
        return found

    return load
