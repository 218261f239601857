"""Targets of assignments and deletions as closures over a frame."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import islice
from typing import Any

from sgc.runtime.executor.code.iterators import drained, is_iterable
from sgc.runtime.executor.code.methods.instances import delete_attribute, set_attribute
from sgc.runtime.executor.code.methods.operators import put, remove
from sgc.runtime.executor.code.tree.compiling import Context, compile_expression
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame, Place

Store = Callable[[Frame, Any], None]
Delete = Callable[[Frame], None]


def compile_store(node: ast.AST, at: Context) -> Store:
    """A closure that gives a target a value."""
    if isinstance(node, ast.Name):
        return store_name(place_of(node.id, at))
    if isinstance(node, (ast.Tuple, ast.List)):
        return _store_many(node.elts, at)
    if isinstance(node, ast.Attribute):
        return _store_attribute(node, at)
    assert isinstance(node, ast.Subscript)
    items, key = compile_expression(node.value, at), compile_expression(node.slice, at)

    def store(f: Frame, value: Any) -> None:
        of, at_key = items(f), key(f)
        if type(of) is list and type(at_key) is int:
            of[at_key] = value
        else:
            put(of, at_key, value)

    return store


def _store_attribute(node: ast.Attribute, at: Context) -> Store:
    of, name = compile_expression(node.value, at), node.attr
    return lambda f, value: set_attribute(of(f), name, value)


def compile_stores(targets: list[ast.expr], at: Context) -> Store:
    """A closure that gives each of some targets the same value."""
    stores = [compile_store(target, at) for target in targets]
    if len(stores) == 1:
        return stores[0]

    def store_all(f: Frame, value: Any) -> None:
        for store in stores:
            store(f, value)

    return store_all


def place_of(name: str, at: Context) -> Place:
    place = at.scope.find(name)
    assert place is not None, name
    return place


def store_name(place: Place) -> Store:
    """A closure that gives a name a value."""
    slot = place.slot

    def store_global(f: Frame, value: Any) -> None:
        f[1][slot] = value

    def store_cell(f: Frame, value: Any) -> None:
        f[slot][0] = value

    def store_local(f: Frame, value: Any) -> None:
        f[slot] = value

    if place.is_global:
        return store_global
    return store_cell if place.is_cell else store_local


def _store_many(elements: list[ast.expr], at: Context) -> Store:
    stars = [number for number, each in enumerate(elements) if isinstance(each, ast.Starred)]
    stores = [
        compile_store(each.value if isinstance(each, ast.Starred) else each, at)
        for each in elements
    ]
    if stars:
        return _store_starred(stores, stars[0])
    n_stores = len(stores)

    def store(f: Frame, value: Any) -> None:
        for each, item in zip(stores, _exactly(value, n_stores), strict=True):
            each(f, item)

    return store


def _exactly(value: Any, n: int) -> Any:
    """The items of a value, which must be as many as the targets."""
    if (type(value) is tuple or type(value) is list) and len(value) == n:
        return value
    items = list(islice(_iterator(value), n + 1))
    if len(items) < n:
        raise ValueError(f"not enough values to unpack (expected {n}, got {len(items)})")
    if len(items) > n:
        raise ValueError(f"too many values to unpack (expected {n})")
    return items


def _iterator(value: Any) -> Any:
    if not (is_iterable(value) or hasattr(type(value), "__getitem__")):
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object")
    return iter(value)


def _store_starred(stores: list[Store], star: int) -> Store:
    n_after = len(stores) - star - 1

    def store(f: Frame, value: Any) -> None:
        items = list(drained(_iterator(value)))
        least = star + n_after
        if len(items) < least:
            raise ValueError(
                f"not enough values to unpack (expected at least {least}, got {len(items)})"
            )
        end = len(items) - n_after
        spread = [*items[:star], items[star:end], *items[end:]]
        for each, item in zip(stores, spread, strict=True):
            each(f, item)

    return store


def compile_deletes(targets: list[ast.expr], at: Context) -> Delete:
    """A closure that deletes each of some targets."""
    parts = [_compile_delete(each, at) for each in targets]

    def delete_all(f: Frame) -> None:
        for part in parts:
            part(f)

    return delete_all


def _compile_delete(node: ast.expr, at: Context) -> Delete:
    if isinstance(node, (ast.Tuple, ast.List)):
        return compile_deletes(node.elts, at)
    if isinstance(node, ast.Name):
        # Reading it raises what deleting a name without a value raises.
        read = compile_expression(ast.Name(node.id, ast.Load()), at)
        store = store_name(place_of(node.id, at))

        def delete(f: Frame) -> None:
            read(f)
            store(f, UNSET)

        return delete
    if isinstance(node, ast.Attribute):
        of, attribute = compile_expression(node.value, at), node.attr
        return lambda f: delete_attribute(of(f), attribute)
    assert isinstance(node, ast.Subscript)
    items, key = compile_expression(node.value, at), compile_expression(node.slice, at)
    return lambda f: remove(items(f), key(f))
