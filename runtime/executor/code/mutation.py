"""Decides whether code may mutate its arguments, or parts of them, by its statements and the names
that it calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from sgc.ir.code import Code, parse_code

# Methods and functions, of any type, that mutate their arguments.
_NAMES = """
add append appendleft clear difference_update discard extend extendleft heapify heappop heappush
heappushpop heapreplace insert insort insort_left insort_right intersection_update move_to_end pop
popitem popleft remove reverse rotate setdefault shuffle sort subtract symmetric_difference_update
update writeheader writerow writerows
"""
_CHANGES = frozenset(_NAMES.split())


def may_change(code: Code) -> bool:
    """Whether code may mutate its arguments; False is certain, True is not."""
    return may_mutate(code.body) or any(_is_changing(found.item) for found in code.imports.values())


def may_mutate(parts: Iterable[ast.AST]) -> bool:
    """Whether parts of code may mutate anything; False is certain except for imported functions."""
    return any(_changes(node) for part in parts for node in ast.walk(part))


def _changes(node: ast.AST) -> bool:
    if isinstance(node, (ast.AugAssign, ast.Delete)):
        return True
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return True
    if isinstance(node, ast.Name):  # these may call a method by its name
        return node.id in ("getattr", "setattr")
    # Reading a defaultdict may add a key to it, but such arguments are always copied.
    return isinstance(node, ast.Attribute) and node.attr in _CHANGES


def _is_changing(name: str | None) -> bool:
    return name in _CHANGES


# Methods that mutate only their object, none of its parts.
_OWN = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop",
    "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "update",
})  # fmt: skip

# The way from an argument to a part of it: names of attributes, and None for any item.
Way = tuple[str | None, ...]
Ways = frozenset[Way]
MAX_WAY = 4


def spares_parts(source: str) -> bool:
    """Whether code mutates at most its arguments themselves, none of their parts; True is certain,
    False is not.
    """
    return all(ways is not None and ways <= {()} for ways in mutated(source))


@lru_cache(maxsize=256)
def mutated(source: str) -> tuple[Ways | None, ...]:
    """For each argument of code, the ways to the parts that it may mutate; None for any part."""
    code = parse_code(source)
    params = [each.arg for each in _params(code.entry)]
    unknown = (None,) * len(params)
    others = [part for part in code.body if part is not code.entry]
    if any(_is_changing(found.item) for found in code.imports.values()):
        return unknown
    if any(_changes(node) for part in others for node in ast.walk(part)):
        return unknown
    if any(name in params for name in _bound_in(code.entry)):
        return unknown
    found: dict[str, set[Way]] = {name: set() for name in params}
    has_classes = any(isinstance(each, ast.ClassDef) for each in others)
    for node in _changed_by(code.entry):
        way = _way_to(node)
        # `x[k]` and `x.a` of an object may be any part of it, if the code has its class.
        if way is None or way[0] not in found or len(way) > MAX_WAY or (has_classes and way[1:]):
            return unknown
        found[way[0]].add(way[1:])
    return tuple(frozenset(found[name]) for name in params)


def _params(function: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of an entry, which are all positional."""
    return [*function.args.posonlyargs, *function.args.args]


def _way_to(node: ast.AST) -> tuple[Any, ...] | None:
    """A name, and the way from it to the value of an expression; None if that is not certain."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        before, step = _way_to(node.value), node.attr
        return None if before is None else (*before, step)
    given = node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr != "setdefault" or not all(map(_is_new, node.args[1:])):
            return None  # the call may return an argument
        given = node.func
    elif not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
        return None
    before = _way_to(given.value)  # type: ignore[attr-defined]
    return None if before is None else (*before, None)


def _is_new(node: ast.AST) -> bool:
    """Whether the value of an expression is a new object, or one that cannot be mutated."""
    if isinstance(node, ast.List | ast.Set | ast.Tuple):
        return all(map(_is_new, node.elts))
    is_empty = isinstance(node, ast.Dict) and not node.keys
    is_made = isinstance(node, ast.Call) and not node.args and not node.keywords
    return is_empty or isinstance(node, ast.Constant) or (is_made and _is_type(node.func))  # type: ignore[attr-defined]


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("list", "dict", "set", "Counter")


def _bound_in(function: ast.FunctionDef) -> Iterator[str | None]:
    """The names that a function binds to other objects than its arguments."""
    own = {*map(id, _params(function))}
    in_place = {id(node.target) for node in ast.walk(function) if isinstance(node, ast.AugAssign)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in in_place:
                yield node.id
        elif isinstance(node, ast.arg) and id(node) not in own:
            yield node.arg
        elif isinstance(node, ast.MatchMapping):
            yield node.rest
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef)):
            yield node.name


def _changed_by(function: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose values a function mutates; for a method that may mutate a part of its
    object, the method itself."""
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign):
            yield node.target
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            yield node.value
        elif isinstance(node, (ast.Attribute, ast.Name)) and _changes(node):
            is_own = isinstance(node, ast.Attribute) and node.attr in _OWN
            yield node.value if is_own else ast.Name("")  # type: ignore[union-attr]
