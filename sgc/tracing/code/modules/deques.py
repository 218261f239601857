"""Which variables of a module are deques that are used as lists could be: they are made in one
function, of which nothing but their items leaves, and neither rotated nor bounded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

# Functions, by their first line and column, and the names of such variables.
Deques = frozenset[tuple[int, int, str]]

_METHODS = frozenset({"append", "appendleft", "clear", "extend", "pop", "popleft"})
_TAKING = frozenset(
    {"all", "any", "enumerate", "len", "list", "max", "min", "reversed", "set", "sorted", "sum",
     "tuple"}
)  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def deques_of(module: ast.Module) -> Deques:
    """The deques of a module."""
    nodes = [*ast.walk(module)]
    means = [each for each in nodes if isinstance(each, ast.alias) and each.name == "deque"]
    if len(means) != 1 or means[0].asname or _binds(nodes):
        return frozenset()
    return frozenset(
        (each.lineno, each.col_offset, name)
        for each in nodes
        if isinstance(each, _FUNCTIONS)
        for name in _within(each)
    )


def is_made(value: ast.expr | None) -> bool:
    """Whether an expression makes a deque without a bound."""
    is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    return is_call and value.func.id == "deque" and not value.keywords and len(value.args) < 2  # type: ignore[union-attr]


def _binds(nodes: list[ast.AST]) -> bool:
    """Whether the name means another thing somewhere."""
    return any(
        (isinstance(each, ast.Name) and each.id == "deque" and not isinstance(each.ctx, ast.Load))
        or (isinstance(each, (*_FUNCTIONS, ast.ClassDef)) and each.name in ("deque", "list"))
        or (isinstance(each, ast.arg) and each.arg in ("deque", "list"))
        for each in nodes
    )


def _within(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    nodes = [*ast.walk(function)]
    made = {
        target.id
        for each in nodes
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and is_made(each.value)
        for target in _targets(each)
        if isinstance(target, ast.Name)
    }
    if not made:
        return
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    inner = {
        each.id
        for scope in nodes
        if isinstance(scope, _SCOPES) and scope is not function
        for each in ast.walk(scope)
        if isinstance(each, ast.Name)
    }
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    shared = {
        name
        for each in nodes
        if isinstance(each, (ast.Global, ast.Nonlocal))
        for name in each.names
    }
    for name in sorted(made - inner - given - shared):
        uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
        if all(_is_lists(each, parents) for each in uses):
            yield name


def _targets(stmt: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]


def _is_lists(use: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a use of a deque is what a list could be used for, too."""
    parent = parents[use]
    if not isinstance(use.ctx, ast.Load):
        is_stored = isinstance(parent, (ast.Assign, ast.AnnAssign)) and is_made(parent.value)
        return is_stored and len(_targets(parent)) == 1  # type: ignore[arg-type]
    if isinstance(parent, ast.Attribute):
        call = parents[parent]
        is_called = isinstance(call, ast.Call) and call.func is parent and not call.keywords
        is_popping = parent.attr in ("pop", "popleft")
        return is_called and parent.attr in _METHODS and not (is_popping and call.args)  # type: ignore[attr-defined]
    if isinstance(parent, ast.Subscript):
        is_read = parent.value is use and isinstance(parent.ctx, ast.Load)
        return is_read and ast.unparse(parent.slice) in ("0", "-1")
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is use and _is_left_alone(use, parents)
    if isinstance(parent, ast.Compare):
        is_in = isinstance(parent.ops[0], (ast.In, ast.NotIn))
        return is_in and len(parent.ops) == 1 and parent.comparators[0] is use
    if isinstance(parent, ast.Call):
        is_name = isinstance(parent.func, ast.Name) and parent.func.id in _TAKING
        return is_name and parent.args[:1] == [use] and _is_left_alone(use, parents)
    return _is_test(use, parents)


def _is_left_alone(use: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether no loop over a deque, if it is gone over here, uses it otherwise, too: it must not
    change meanwhile."""
    node: ast.AST = use
    while node in parents and not isinstance(node, ast.stmt):
        node = parents[node]
    found = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == use.id]
    return not isinstance(node, ast.For) or len(found) == 1


def _is_test(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether only the truth of a value counts."""
    parent = parents[node]
    if isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        return isinstance(parent, ast.UnaryOp) or _is_test(parent, parents)
    return isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is node


def names_in(function: ast.FunctionDef, deques: Deques) -> Set[str]:
    """The deques of a function."""
    place = (function.lineno, function.col_offset)
    return {name for *at, name in deques if tuple(at) == place}
