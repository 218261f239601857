"""Finds the variables of code whose values, or parts of them, become parts of other values."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence


def stored_names(node: ast.AST) -> set[str]:
    """The variables whose values may become parts of other values: all that are not only read."""
    looked_at: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            if each.func.id in ("len", "str", "repr", "sum", "any", "all"):
                looked_at |= {read for arg in each.args for read in _in_key(arg)}
                looked_at |= set(_in_total(each.args)) if each.func.id == "sum" else set()
        elif isinstance(each, ast.Compare):
            looked_at |= set(map(id, (each.left, *each.comparators)))
        elif isinstance(each, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            looked_at |= set(_in_making(each))
        elif isinstance(each, ast.FormattedValue):
            looked_at |= set(_in_key(each.value))
        elif isinstance(each, ast.Subscript):
            looked_at |= set(_in_key(each.slice))
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            keys = each.args[: each.func.attr in _KEYED]
            looked_at |= {read for key in keys for read in _in_key(key)}
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
        if id(each) not in looked_at
    }


def _in_making(made: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Iterator[int]:
    """The ids of the variables in a comprehension whose items hold no part of them, because all
    items are one constant or new texts."""
    if isinstance(made.elt, (ast.Constant, ast.JoinedStr)):
        nodes = [*ast.walk(made)]
        viewed = {id(each.iter) for each in made.generators if _is_view(each.iter)}
        calls = (each for each in nodes if isinstance(each, (ast.Call, ast.NamedExpr)))
        if all(id(each) in viewed for each in calls):
            yield from (id(each) for each in nodes if isinstance(each, ast.Name))


def _is_view(node: ast.expr) -> bool:
    """Whether an expression is a call of a variable's `items`, `keys` or `values`."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not is_method or node.args or node.keywords:  # type: ignore[attr-defined]
        return False
    method: ast.Attribute = node.func  # type: ignore[attr-defined]
    return method.attr in _VIEWS and isinstance(method.value, ast.Name)


def _in_total(args: Sequence[ast.expr]) -> Iterator[int]:
    """The ids of the variables in a comprehension whose items are only summed: the total is a
    number, or a new object made by `+`."""
    if len(args) == 1 and isinstance(args[0], (ast.GeneratorExp, ast.ListComp)):
        nodes = [*ast.walk(args[0])]
        if not any(isinstance(each, (ast.Call, ast.NamedExpr)) for each in nodes):
            yield from (id(each) for each in nodes if isinstance(each, ast.Name))


def _in_key(node: ast.expr) -> Iterator[int]:
    """The ids of the variables of which an expression reads parts for a key or a text, neither of
    which can be changed."""
    if isinstance(node, ast.Name):
        yield id(node)
    elif isinstance(node, ast.JoinedStr):
        yield from (read for each in node.values for read in _in_key(each))
    elif isinstance(node, ast.FormattedValue):
        yield from _in_key(node.value)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from _in_key(node.func.value)
    elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Tuple, ast.BinOp)):
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.expr):
                yield from _in_key(each)


def merged_names(node: ast.AST) -> set[str]:
    """The variables whose items a statement adds to a list or dict by `extend` or `update`. A run
    refuses later changes of the items, which both then hold."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.keywords or not isinstance(call.func, ast.Attribute):
        return set()
    is_added = call.func.attr in ("extend", "update") and isinstance(call.func.value, ast.Name)
    return {each.id for each in call.args if is_added and isinstance(each, ast.Name)}


# Methods whose first argument is a key, or is only compared with items.
_KEYED = frozenset({"add", "count", "discard", "get", "index", "pop", "remove", "setdefault"})


def taken_names(functions: Iterable[ast.AST]) -> set[str]:
    """The variables with uses other than by a key, an attribute, a loop, `in` or `+`."""
    looked_into: set[int] = set()
    parts = [each for function in functions for each in ast.walk(function)]
    iterated = {id(each) for part in parts for each in _iterated(part)}
    for each in parts:
        if isinstance(each, ast.Subscript) or (
            isinstance(each, ast.Attribute) and (each.attr not in _VIEWS or id(each) in iterated)
        ):
            looked_into.add(id(each.value))
        elif isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add):
            if isinstance(each.right, (ast.List, ast.Tuple)):  # it makes a new one
                looked_into.add(id(each.left))
        elif isinstance(each, ast.Compare):
            looked_into |= set(map(id, each.comparators))
    looked_into |= iterated
    return {each.id for each in parts if isinstance(each, ast.Name) if id(each) not in looked_into}


def rows_taken(node: ast.AST, names: Collection[str]) -> set[str]:
    """The lists, among `names`, whose unchangeable rows may become parts of other values: all but
    those that are only looped over, with only the parts of each row used."""
    parts, looping, targets = [*ast.walk(node)], set[int](), dict[str, set[str]]()
    taken = row_taken(node)
    for each in parts:
        if isinstance(each, (ast.For, ast.comprehension)):
            over, target = _rows_of(each.iter, each.target)
            if isinstance(over, ast.Name) and isinstance(target, ast.Name):
                looping.add(id(over))
                targets.setdefault(over.id, set()).add(target.id)
    others = {each.id for each in parts if isinstance(each, ast.Name) and id(each) not in looping}
    return {name for name in names if name in others or not taken.isdisjoint(targets.get(name, ()))}


def row_taken(node: ast.AST) -> set[str]:
    """The variables with uses other than reading parts of the row that they may refer to."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    methods = (each for each in calls if isinstance(each, ast.Attribute))
    return taken_names([node]) | {
        each.value.id
        for each in methods
        if isinstance(each.value, ast.Name) and each.attr not in _OF_ROWS
    }


_OF_ROWS = frozenset({"get", "items", "keys", "values"})  # a record's method may return the record


def _rows_of(over: ast.expr, target: ast.expr) -> tuple[ast.expr, ast.expr]:
    """The list that a loop iterates, and the loop's variable for an item of the list."""
    name = over.func.id if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) else ""
    if not isinstance(over, ast.Call) or len(over.args) != 1:
        return over, target
    if name == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return over.args[0], target.elts[1]
    return (over.args[0] if name in ("reversed", "sorted") else over), target


# Methods that return a view of their dict.
_VIEWS = frozenset({"items", "keys", "values"})
# Functions that use only the items of their single argument; a method may have any name.
ITERATING = frozenset({"all", "any", "len", "list", "max", "min", "set", "sorted", "sum", "tuple"})


# Functions that return items of some of their arguments one by one: the slice of those arguments.
_LAZY = {"enumerate": (0, 1), "reversed": (0, 1), "zip": (0, None), "map": (1, None),
         "filter": (1, None)}  # fmt: skip


def _iterated(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of which a node uses only the items; for `d.items()`, also the method."""
    found: list[ast.expr] = []
    if isinstance(node, (ast.For, ast.comprehension)):
        found = [node.iter]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        # `max` of several lists returns one of them, and `sum` may return its start.
        found = node.args if node.func.id in ITERATING and len(node.args) == 1 else []
        found = found or node.args[slice(*_LAZY.get(node.func.id, (0, 0)))]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_join = node.func.attr == "join" and isinstance(node.func.value, ast.Constant)
        found = node.args if is_join else []
    elif isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        found = [each for op, each in pairs if isinstance(op, (ast.In, ast.NotIn))]
    for each in found:
        yield each
        if isinstance(each, ast.Call) and not each.args:
            yield each.func
