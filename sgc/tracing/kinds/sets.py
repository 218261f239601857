"""Sets of the program's own whose order a copy, or a set that code makes, does not have.

The order of texts in a set differs by process. That of numbers follows from how the set was made,
and is the same in each run of a program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sgc.runtime.executor.code.set_order import copied_set, is_constant, merged

_NUMBERS = (int, float, bool, Decimal, Fraction)


def order_is_fixed(value: Any) -> bool:
    """Whether a value's hash, or those of its items, are the same in each process."""
    if type(value) in (tuple, frozenset, set):
        return all(map(order_is_fixed, value))
    return type(value) in _NUMBERS


def has_open_order(node: ast.Set) -> bool:
    """Whether the order of a display of numbers depends on the order in which they were added:
    that is another one where Python has read a module's constants from its `.pyc`."""
    if not all(map(is_constant, node.elts)):
        return False
    try:
        items = [ast.literal_eval(each) for each in node.elts]
    except ValueError:  # to be computed
        return True
    if not order_is_fixed(tuple(items)):
        return False
    each_order = [items[n:] + items[:n] for n in range(len(items))]
    each_order += [order[::-1] for order in each_order]
    made = {(*frozenset(order),) for order in each_order}
    return len(made) > 1 or len({(*merged(order),) for order in each_order}) > 1


def sets_in(value: Any) -> Iterator[Any]:
    """The sets and frozensets in plain data."""
    if isinstance(value, (set, frozenset)):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from sets_in(each)


def copied_data(value: Any) -> Any:
    """A deep copy of plain data, whose sets have the order of its own where that can be."""
    return deepcopy(value, {id(each): _copied(each) for each in sets_in(value)})


def _copied(value: Any) -> Any:
    return value if isinstance(value, frozenset) else copied_set(value)[0]


def has_lost(value: Any) -> bool:
    """Whether a copy of plain data has a set of another order."""
    return any(isinstance(each, set) and not copied_set(each)[1] for each in sets_in(value))


# -- where the order is seen --------------------------------------------------------------------

_BLIND = frozenset({"all", "any", "bool", "isinstance", "len", "max", "min", "sorted"})
_BLIND_METHODS = frozenset({
    "add", "clear", "difference_update", "discard", "intersection_update", "isdisjoint", "issubset",
    "issuperset", "remove", "symmetric_difference_update", "update",
})  # fmt: skip
_MAKING = frozenset({
    "copy", "difference", "intersection", "symmetric_difference", "union", "get",
})  # fmt: skip


def order_seen(tree: ast.AST, names: frozenset[str]) -> ast.expr | None:
    """An expression of one of these names, or of a part of its value, by which code may see in
    which order a set's items come; None if there is none."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        if name in names and is_read and not _is_blind(node, parents):
            return node  # type: ignore[return-value]
    return None


def _is_blind(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether what is done with a set, or with what holds it, gives the same in any order."""
    around = parents.get(node)
    if isinstance(around, ast.Compare):
        return True
    if isinstance(around, ast.Subscript):
        return around.slice is node or _is_blind(around, parents)
    if isinstance(around, ast.Attribute):
        call = parents.get(around)
        is_called = isinstance(call, ast.Call) and call.func is around
        if is_called and around.attr in _BLIND_METHODS:
            return True
        return is_called and around.attr in _MAKING and _is_blind(call, parents)  # type: ignore[arg-type]
    if isinstance(around, ast.Call):
        return _is_blind_call(around, node, parents)
    if isinstance(around, ast.BinOp):
        return isinstance(around.op, _OF_SETS) and _is_blind(around, parents)
    if isinstance(around, ast.comprehension):
        return _is_blind_over(parents[around], parents)
    if isinstance(around, (ast.If, ast.While, ast.IfExp)):
        return around.test is node
    return isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not)


_OF_SETS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


def _is_blind_call(call: ast.Call, node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):  # of another set
        is_making = function.attr in _MAKING - {"get"} and _is_blind(call, parents)
        return is_making or (function.attr in _BLIND_METHODS - {"add"})
    if not isinstance(function, ast.Name) or call.keywords:
        return False
    if function.id in ("set", "frozenset"):
        return _is_blind(call, parents)
    return function.id in _BLIND


def _is_blind_over(made: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a comprehension over the set gives the same in any order."""
    if isinstance(made, ast.SetComp):
        return _is_blind(made, parents)
    around = parents.get(made)
    is_of_one = isinstance(made, (ast.GeneratorExp, ast.ListComp)) and isinstance(around, ast.Call)
    return is_of_one and _is_blind_call(around, made, parents)  # type: ignore[arg-type]
