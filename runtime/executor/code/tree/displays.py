"""Lists, tuples, sets, dicts and comprehensions as closures over a frame."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from sgc.runtime.executor.code.fuel import check_key, check_keys, spent
from sgc.runtime.executor.code.iterators import drained, is_iterable, keys_for, nested
from sgc.runtime.executor.code.set_order import is_constant, merged
from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Ev,
    compile_expression,
    on_expression,
    weight_of,
)
from sgc.runtime.executor.code.tree.driving import driven
from sgc.runtime.executor.code.tree.functions import Parameters, open_scope
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame, inner_names, target_names
from sgc.runtime.executor.code.tree.targets import Store, compile_store
from sgc.runtime.executor.interface.value_limits import MAX_ITEMS, check_items


@on_expression(ast.List, ast.Tuple, ast.Set)
def _sequence(node: ast.List | ast.Tuple | ast.Set, at: Context) -> Ev:
    is_merged = len(node.elts) > 2 and all(map(is_constant, node.elts))
    make = _merged_set_of if is_merged and isinstance(node, ast.Set) else _MAKERS[type(node)]
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return _starred(node.elts, make, at)
    items = [compile_expression(each, at) for each in node.elts]
    if make is list:
        return lambda f: [item(f) for item in items]
    if make is tuple:
        return lambda f: tuple([item(f) for item in items])
    return lambda f: make([item(f) for item in items])


def _set_of(items: list[Any]) -> set[Any]:
    check_keys(items, 0)
    return set(items)


def _merged_set_of(items: list[Any]) -> set[Any]:
    check_keys(items, 0)
    return merged(items)


_MAKERS: dict[type[ast.AST], Callable[[list[Any]], Any]] = {
    ast.List: list,
    ast.Tuple: tuple,
    ast.Set: _set_of,
}


def _starred(elements: list[ast.expr], make: Callable[[list[Any]], Any], at: Context) -> Ev:
    parts = [
        (True, compile_expression(each.value, at))
        if isinstance(each, ast.Starred)
        else (False, compile_expression(each, at))
        for each in elements
    ]

    def collect(f: Frame) -> Any:
        found: Any = set() if make is _set_of else []
        add = found.add if make is _set_of else found.append
        for is_star, part in parts:
            value = part(f)
            if not is_star:
                if make is _set_of:
                    check_key(value, len(found))
                add(value)
                continue
            if not is_iterable(value):
                raise TypeError(f"Value after * must be an iterable, not {type(value).__name__}")
            if make is _set_of:
                found.update(keys_for(value, found))
            else:
                found.extend(drained(value))
            check_items(len(found))
        return make(found) if make is tuple else found

    return collect


@on_expression(ast.Dict)
def _dict(node: ast.Dict, at: Context) -> Ev:
    pairs = [
        (None if key is None else compile_expression(key, at), compile_expression(value, at))
        for key, value in zip(node.keys, node.values, strict=True)
    ]

    def collect(f: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in pairs:
            if key is None:
                _update(found, value(f))
                continue
            at_key = key(f)
            if type(at_key) is not str:
                check_key(at_key, len(found))
            found[at_key] = value(f)
        return found

    return collect


def _update(found: dict[Any, Any], more: Any) -> None:
    if not hasattr(type(more), "keys"):
        raise TypeError(f"{type(more).__name__!r} object is not a mapping")
    check_keys(more, len(found))
    found.update(more)
    check_items(len(found))


# A turn of a comprehension runs this on its innermost level.
Add = Callable[[Any, Frame], None]


@on_expression(ast.ListComp, ast.SetComp, ast.DictComp)
def _comprehension(node: ast.ListComp | ast.SetComp | ast.DictComp, at: Context) -> Ev:
    first = compile_expression(node.generators[0].iter, at)
    block = at.scope.add_block(_bound(node))
    cells = [place.slot for place in block.values() if place.is_cell]
    make, add = _adder(node, at)
    turn = _turns(node.generators, add, at, _elements_weight(node))
    at.scope.blocks.pop()

    def collect(f: Frame) -> Any:
        items = iter(first(f))
        for slot in cells:
            f[slot] = [UNSET]
        found = make()
        turn(items, found, f)
        return found

    return collect


def _bound(node: Any) -> dict[str, bool]:
    """The names that a comprehension binds, and whether each lives in a cell."""
    mentioned = inner_names(_inner_nodes(node))
    targets = target_names([each.target for each in node.generators])
    return {name: name in mentioned for name in targets}


def _inner_nodes(node: Any) -> list[ast.AST]:
    """The nodes that a comprehension evaluates in its own scope: all but the first iterable."""
    generators = node.generators
    inner: list[ast.AST] = [each.iter for each in generators[1:]]
    inner += [test for each in generators for test in each.ifs]
    return [*inner, node.key, node.value] if isinstance(node, ast.DictComp) else [*inner, node.elt]


def _elements_weight(node: Any) -> int:
    if isinstance(node, ast.DictComp):
        return 5 + weight_of(node.key, node.value)
    return (5 if isinstance(node, ast.SetComp) else 2) + weight_of(node.elt)


def _adder(node: Any, at: Context) -> tuple[Callable[[], Any], Add]:
    if isinstance(node, ast.DictComp):
        return dict, _dict_adder(
            compile_expression(node.key, at), compile_expression(node.value, at)
        )
    element = compile_expression(node.elt, at)
    if isinstance(node, ast.ListComp):
        return list, lambda found, f: found.append(element(f))

    def add(found: set[Any], f: Frame) -> None:
        item = element(f)
        check_key(item, len(found))
        found.add(item)

    return set, add


def _dict_adder(key: Ev, value: Ev) -> Add:
    def add(found: dict[Any, Any], f: Frame) -> None:
        at_key = key(f)
        if type(at_key) is not str:
            check_key(at_key, len(found))
        found[at_key] = value(f)

    return add


Turns = Callable[[Iterator[Any], Any, Frame], None]


def _turns(generators: list[ast.comprehension], add: Add, at: Context, weight: int) -> Turns:
    first, *rest = generators
    store, tests, cost = _turn(first, at)
    if not rest:
        return _loop(store, tests, add, cost + weight)
    items = compile_expression(rest[0].iter, at)
    further = _turns(rest, add, at, weight)

    def add_all(found: Any, f: Frame) -> None:
        further(iter(items(f)), found, f)

    return _loop(store, tests, add_all, cost + weight_of(rest[0].iter))


def _turn(generator: ast.comprehension, at: Context) -> tuple[Store, list[Ev], int]:
    """The store for the item of each turn, the tests of a turn, and the steps that it takes."""
    store = compile_store(generator.target, at)
    tests = [compile_expression(test, at) for test in generator.ifs]
    return store, tests, 1 + weight_of(*generator.ifs)


def _loop(store: Store, tests: list[Ev], add: Add, cost: int) -> Turns:
    def loop(items: Iterator[Any], found: Any, f: Frame) -> None:
        run = f[0]
        for item in items:
            run.left -= cost
            if run.left < 0:
                raise spent()
            store(f, item)
            for test in tests:
                if not test(f):
                    break
            else:
                add(found, f)
        if len(found) > MAX_ITEMS:
            check_items(len(found))

    return loop


_ITEMS = "the items"  # no name of the code's


@on_expression(ast.GeneratorExp)
def _generator(node: ast.GeneratorExp, at: Context) -> Ev:
    first = compile_expression(node.generators[0].iter, at)
    parameters = Parameters("<genexpr>", (_ITEMS,), 0, (), None, None)
    scope = open_scope(parameters, [], at).scope
    for name, is_cell in _bound(node).items():
        scope.add(name, is_cell)
    within = Context(scope, at.names)
    element = compile_expression(node.elt, within)
    turns = _lazy_turns(node.generators, element, within, 3 + weight_of(node.elt))

    def make(f: Frame) -> Iterator[Any]:
        value = first(f)
        items = iter(value)
        frame: Frame = [UNSET] * scope.n_slots
        frame[0], frame[1] = f[0], f[1]
        for slot in scope.cells:
            frame[slot] = [UNSET]
        for slot, outer_slot in scope.captured:
            frame[slot] = f[outer_slot]
        made: Iterator[Any] = nested(driven(f[0], turns, [items], frame), value)
        return made

    return make


# The iterator and its item are held in a list, for the reason given in `driven`.
LazyTurns = Callable[[list[Iterator[Any]], Frame], Iterator[Any]]


def _lazy_turns(
    generators: list[ast.comprehension], element: Ev, at: Context, weight: int
) -> LazyTurns:
    first, *rest = generators
    store, tests, cost = _turn(first, at)
    cost += weight
    further: LazyTurns | None = None
    if rest:
        items = compile_expression(rest[0].iter, at)
        cost += weight_of(rest[0].iter)
        further = _lazy_turns(rest, element, at, weight)

    def turns(box: list[Iterator[Any]], f: Frame) -> Iterator[Any]:
        run = f[0]
        while True:
            try:
                item = next(box[0])
            except StopIteration:
                return
            run.left -= cost
            if run.left < 0:
                raise spent()
            store(f, item)
            item = None
            for test in tests:
                if not test(f):
                    break
            else:
                if further is None:
                    yield element(f)
                else:
                    yield from further([iter(items(f))], f)

    return turns
