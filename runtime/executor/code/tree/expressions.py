"""Names, operators and other expressions as closures over a frame."""

from __future__ import annotations

import ast
from typing import Any

from sgc.ir.code import MODULES, Import
from sgc.ir.code_checks import is_super
from sgc.runtime.executor.code.methods.attributes import attribute
from sgc.runtime.executor.code.methods.comparing import COMPARED
from sgc.runtime.executor.code.methods.instances import super_attribute
from sgc.runtime.executor.code.methods.operators import BINARY, UNARY, subscript
from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Ev,
    compile_expression,
    on_expression,
)
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame, Place


@on_expression(ast.Constant)
def _constant(node: ast.Constant, at: Context) -> Ev:
    return constant(node.value)


def constant(value: Any) -> Ev:
    return lambda f: value


@on_expression(ast.Name)
def _name(node: ast.Name, at: Context) -> Ev:
    place = at.scope.find(node.id)
    if place is not None:
        return load(node.id, place)
    found = at.names.imports.get(node.id)
    if found is not None:
        return constant(at.names.values(found.module, found.item or ""))
    value = at.names.values(None, node.id)
    if value is not UNSET:
        return constant(value)

    def missing(f: Frame) -> Any:
        raise NameError(f"name {node.id!r} is not defined", name=node.id)

    return missing


def load(name: str, place: Place) -> Ev:
    """A closure that reads a name."""
    slot = place.slot
    if place.is_global:
        return _load_global(name, slot)
    if place.is_cell:

        def cell(f: Frame) -> Any:
            value = f[slot][0]
            if value is UNSET:
                raise _unset(name, place)
            return value

        return cell

    def local(f: Frame) -> Any:
        value = f[slot]
        if value is UNSET:
            raise _unset(name, place)
        return value

    return local


def _load_global(name: str, slot: int) -> Ev:
    def load_global(f: Frame) -> Any:
        value = f[1][slot]
        if value is UNSET:
            raise NameError(f"name {name!r} is not defined", name=name)
        return value

    return load_global


def _unset(name: str, place: Place) -> NameError:
    if place.is_free:
        return NameError(
            f"cannot access free variable {name!r} where it is not associated with a value in "
            "enclosing scope",
            name=name,
        )
    return UnboundLocalError(
        f"cannot access local variable {name!r} where it is not associated with a value"
    )


@on_expression(ast.BinOp)
def _binary(node: ast.BinOp, at: Context) -> Ev:
    operation = BINARY[type(node.op).__name__]
    left, right = compile_expression(node.left, at), compile_expression(node.right, at)
    return lambda f: operation(left(f), right(f))


@on_expression(ast.UnaryOp)
def _unary(node: ast.UnaryOp, at: Context) -> Ev:
    operand = compile_expression(node.operand, at)
    if isinstance(node.op, ast.Not):
        return lambda f: not operand(f)
    operation = UNARY[type(node.op).__name__]
    return lambda f: operation(operand(f))


@on_expression(ast.BoolOp)
def _bool(node: ast.BoolOp, at: Context) -> Ev:
    *first, last = [compile_expression(each, at) for each in node.values]
    is_and = isinstance(node.op, ast.And)
    if len(first) == 1:
        (left,) = first
        return (lambda f: left(f) and last(f)) if is_and else (lambda f: left(f) or last(f))

    def many(f: Frame) -> Any:
        for each in first:
            value = each(f)
            if bool(value) is not is_and:
                return value
        return last(f)

    return many


@on_expression(ast.Compare)
def _compare(node: ast.Compare, at: Context) -> Ev:
    left = compile_expression(node.left, at)
    rest = [
        (COMPARED[type(op).__name__], compile_expression(each, at))
        for op, each in zip(node.ops, node.comparators, strict=True)
    ]
    if len(rest) == 1:
        ((operation, right),) = rest
        return lambda f: operation(left(f), right(f))

    def chain(f: Frame) -> Any:
        a, result = left(f), None
        for operation, right in rest:
            b = right(f)
            result = operation(a, b)
            if not result:
                return result
            a = b
        return result

    return chain


@on_expression(ast.IfExp)
def _choice(node: ast.IfExp, at: Context) -> Ev:
    test, body = compile_expression(node.test, at), compile_expression(node.body, at)
    orelse = compile_expression(node.orelse, at)
    return lambda f: body(f) if test(f) else orelse(f)


@on_expression(ast.NamedExpr)
def _walrus(node: ast.NamedExpr, at: Context) -> Ev:
    value = compile_expression(node.value, at)
    place = at.scope.store_place(node.target.id)
    assert place is not None
    slot, is_cell, is_global = place.slot, place.is_cell, place.is_global

    def store(f: Frame) -> Any:
        result = value(f)
        if is_global:
            f[1][slot] = result
        elif is_cell:
            f[slot][0] = result
        else:
            f[slot] = result
        return result

    return store


@on_expression(ast.Subscript)
def _subscript(node: ast.Subscript, at: Context) -> Ev:
    items, key = compile_expression(node.value, at), compile_expression(node.slice, at)

    def get(f: Frame) -> Any:
        of, at_key = items(f), key(f)
        kind = type(of)
        if (kind is list or kind is tuple or kind is str) and type(at_key) is int:
            return of[at_key]
        return subscript(of, at_key)

    return get


@on_expression(ast.Slice)
def _slice(node: ast.Slice, at: Context) -> Ev:
    parts = (node.lower, node.upper, node.step)
    lower, upper, step = [
        constant(None) if part is None else compile_expression(part, at) for part in parts
    ]
    return lambda f: slice(lower(f), upper(f), step(f))


@on_expression(ast.Attribute)
def _attribute(node: ast.Attribute, at: Context) -> Ev:
    found = module_value(node, at)
    if found is not None:
        return constant(found[0])
    if is_super(node.value):
        return super_value(node, at)
    of, name = compile_expression(node.value, at), node.attr
    return lambda f: attribute(of(f), name)


def super_value(node: ast.Attribute, at: Context) -> Ev:
    """`super().name` in a method, whose first parameter is the object."""
    method, name = at.scope, node.attr
    assert method.parent is not None
    first = next(iter(method.places))
    read, key = load(first, method.places[first]), method.parent.owner
    return lambda f: super_attribute(f[0].classes[key].kind, read(f), name)


def imported(node: ast.expr, at: Context) -> Import | None:
    """The item of a module that an expression names; None if it names none."""
    if isinstance(node, ast.Name):
        return at.names.imports.get(node.id) if at.scope.find(node.id) is None else None
    return _item_of_module(node, at) if isinstance(node, ast.Attribute) else None


def module_value(node: ast.Attribute, at: Context) -> tuple[Any] | None:
    """The value of a chain of attributes of a module, in a tuple; None for another expression."""
    found = _item_of_module(node, at)
    if found is None:
        return None
    value = at.names.values(found.module, found.item or "")
    return None if value is UNSET else (value,)


def _item_of_module(node: ast.Attribute, at: Context) -> Import | None:
    names: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        names.insert(0, inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or at.scope.find(inner.id) is not None:
        return None
    found = at.names.imports.get(inner.id)
    if found is None or found.item is not None:
        return None
    module = ".".join([found.module, *names[:-1]])
    return Import(module, names[-1]) if module in MODULES else None
