"""What is rewritten where objects are references.

`max`, `min` and `sorted` with a key, and `sort`, call the key in a loop:

    best = max(xs, key=lambda x: x.n)      best = chosen("max", list((x.n, x) for x in xs), key=…)

`comprehensions.py` makes a loop of that: code that is data cannot look into references. The key
stays, unused, so that each function of the source has its code.

`xs.extend(ys)` of a list of objects appends each.

An empty dict or set of a variable whose keys may be known only at run time becomes a cell, which
may hold references: `by_name = cell({}, "12:4")`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Set
from typing import TypeVar

from sgc.tracing.code.operator_names import CELL, CHOSEN, REST
from sgc.tracing.convert.loops.looping import MAY_BE_USERS, SCOPES
from sgc.tracing.convert.loops.mapped import ITEM
from sgc.tracing.convert.module_names import ModuleNames

_NAMES = frozenset({"max", "min", "sorted"})
_KEYWORDS = {"max": {"key", "default"}, "min": {"key", "default"}, "sorted": {"key", "reverse"}}
_ITEM = f"{ITEM}keyed__"
_Node = TypeVar("_Node", bound=ast.AST)


def with_keyed(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    if {"*", "list"} & names.bound:
        return tree
    if "str" not in names.bound and names.shows_in_loops:
        tree = _Shown().visit(tree)
    return _Keyed(_NAMES - names.bound).visit(tree)  # type: ignore[no-any-return]


class _Shown(ast.NodeTransformer):
    """Shows what has a name by a call, f"{str(x)}", before which the text so far is put away."""

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        is_plain = node.format_spec is None and node.conversion in (-1, _AS_STR)
        if is_plain and _is_dotted(node.value):
            function = _at(ast.Name("str", ast.Load()), node.value)
            node.value = _at(ast.Call(function, [node.value], []), node.value)
            setattr(node.value, MAY_BE_USERS, True)
        return node


_AS_STR = 115  # the conversion of `{x!s}`


class _Keyed(ast.NodeTransformer):
    """own: of the names, those that are Python's."""

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in self._own or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
            return node
        return _chosen(node, name, node.args[0], _KEYWORDS[name]) or node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.generic_visit(node)
        call = node.value
        if _is_extending(call):
            return _appending(call, node)
        method = call.func if isinstance(call, ast.Call) else None
        if not isinstance(method, ast.Attribute) or method.attr != "sort" or call.args:  # type: ignore[attr-defined]
            return node
        of = method.value
        if not isinstance(of.value if isinstance(of, ast.Attribute) else of, ast.Name):
            return node
        assert isinstance(call, ast.Call)
        node.value = _chosen(call, "sort", of, {"key", "reverse"}, copy.deepcopy(of)) or call
        return node


def _chosen(
    node: ast.Call, name: str, items: ast.expr, keywords: set[str], *more: ast.expr
) -> ast.expr | None:
    given = {each.arg: each.value for each in node.keywords}
    key = given.pop("key", None)
    if key is None or not {*given} <= keywords:
        return None
    if isinstance(key, ast.Lambda):
        arguments = key.args
        is_one = len(arguments.args) == 1 and not arguments.defaults and not arguments.kwonlyargs
        is_one = is_one and not (arguments.vararg or arguments.kwarg or arguments.posonlyargs)
        if not is_one or any(
            isinstance(each, (*SCOPES, ast.NamedExpr)) for each in ast.walk(key.body)
        ):
            return None
        value = _Renamed(arguments.args[0].arg).visit(copy.deepcopy(key.body))
    elif _is_dotted(key):
        value = _at(ast.Call(copy.deepcopy(key), [_at(ast.Name(_ITEM, ast.Load()), key)], []), key)
    else:
        return None
    pair = _at(ast.Tuple([value, _at(ast.Name(_ITEM, ast.Load()), key)], ast.Load()), key)
    over = ast.comprehension(_at(ast.Name(_ITEM, ast.Store()), key), items, [], 0)
    made = _at(ast.GeneratorExp(pair, [over]), node)
    pairs = _at(ast.Call(_at(ast.Name("list", ast.Load()), node), [made], []), node)
    given["key"] = key
    args = [_at(ast.Constant(name), node), pairs, *more]
    rest = [_at(ast.keyword(key, value), value) for key, value in given.items()]
    return _at(ast.Call(_at(ast.Name(CHOSEN, ast.Load()), node), args, rest), node)


def _is_dotted(key: ast.expr) -> bool:
    """Whether an expression is a name, or attributes of one."""
    return isinstance(key, ast.Name) or (isinstance(key, ast.Attribute) and _is_dotted(key.value))


def _is_extending(call: ast.expr) -> bool:
    """Whether this is `xs.extend(ys)` of two that have names."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    is_plain = len(call.args) == 1 and not call.keywords and call.func.attr == "extend"
    return is_plain and isinstance(call.func.value, ast.Name) and _is_named(call.args[0])


def _is_named(items: ast.expr) -> bool:
    """Whether items are the value of a name, or the `values()` of one."""
    if isinstance(items, ast.Call) and not items.args and isinstance(items.func, ast.Attribute):
        return items.func.attr == "values" and _is_dotted(items.func.value)
    return _is_dotted(items)


def _appending(call: ast.expr, at: ast.stmt) -> ast.stmt:
    """A loop that appends what the call has not, `for x in rest(xs, ys): xs.append(x)`."""
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    whole, given = call.func.value, call.args[0]
    rest = _at(ast.Call(_at(ast.Name(REST, ast.Load()), call), [whole, given], []), call)
    append = _at(ast.Attribute(copy.deepcopy(whole), "append", ast.Load()), call)
    item = _at(ast.Name(_ITEM, ast.Load()), call)
    body = _at(ast.Expr(_at(ast.Call(append, [item], []), call)), at)
    target = _at(ast.Name(_ITEM, ast.Store()), call)
    return _at(ast.For(target, rest, [body], []), at)


def with_cells(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            keyed = {*_keyed_by_variables(node)}
            for each in ast.walk(node):
                if isinstance(each, (ast.Assign, ast.AnnAssign)):
                    _make_cells(each, keyed, names)
    return tree


def _keyed_by_variables(function: ast.FunctionDef) -> Iterator[str]:
    """The variables that are looked up, or changed, by keys that are no constants."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            whole, keys = node.value, [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whole, keys = node.func.value, node.args[:1] if node.func.attr in _BY_KEY else []
        else:
            continue
        is_open = any(not isinstance(key, (ast.Constant, ast.Slice)) for key in keys)
        if isinstance(whole, ast.Name) and is_open:
            yield whole.id


_BY_KEY = frozenset({"add", "discard", "get", "pop", "remove", "setdefault", "update"})
_EMPTY = frozenset({"dict", "set", "defaultdict", "Counter"})


def _make_cells(stmt: ast.Assign | ast.AnnAssign, keyed: Set[str], names: ModuleNames) -> None:
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
    if len(targets) != 1 or stmt.value is None:
        return
    target, value = targets[0], stmt.value
    if isinstance(target, ast.Name) and target.id in keyed:
        stmt.value = _as_cell(value, names)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        is_one = [isinstance(each, ast.Name) and each.id in keyed for each in target.elts]
        if len(target.elts) == len(value.elts):
            both = zip(value.elts, is_one, strict=True)
            value.elts = [_as_cell(each, names) if is_one else each for each, is_one in both]


def _as_cell(value: ast.expr, names: ModuleNames) -> ast.expr:
    if not _is_empty(value, names):
        return value
    place = _at(ast.Constant(f"{value.lineno}:{value.col_offset}"), value)
    function = _at(ast.Name(CELL, ast.Load()), value)
    return _at(ast.Call(function, [value, place], []), value)


def _is_empty(value: ast.expr, names: ModuleNames) -> bool:
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call) or not isinstance(value.func, (ast.Name, ast.Attribute)):
        return False
    function = value.func
    name = function.id if isinstance(function, ast.Name) else function.attr
    if name not in _EMPTY or value.keywords or {"dict", "set"} & names.bound:
        return False
    return len(value.args) == (name == "defaultdict")


class _Renamed(ast.NodeTransformer):
    """Renames a lambda's parameter in its body, which has no scopes of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return _at(ast.Name(_ITEM, node.ctx), node) if node.id == self._name else node


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)  # type: ignore[type-var]
