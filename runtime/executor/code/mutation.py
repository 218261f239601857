"""Decides whether code may mutate its arguments, or parts of them, by its statements and the names
that it calls.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

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
    """Whether parts of code may mutate anything; False is certain but for imported functions."""
    return any(_changes(node) for part in parts for node in ast.walk(part))


def _changes(node: ast.AST) -> bool:
    if isinstance(node, (ast.AugAssign, ast.Delete)):
        return True
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return True
    if isinstance(node, ast.Name):  # as a method by its name
        return node.id in ("getattr", "setattr")
    # Reading a defaultdict may add a key to it, but such arguments are always copied.
    return isinstance(node, ast.Attribute) and node.attr in _CHANGES


def _is_changing(name: str | None) -> bool:
    return name in _CHANGES


# Methods that mutate their object alone, and none of its parts.
_OWN = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop",
    "popitem", "popleft", "remove", "reverse", "rotate", "sort", "update",
})  # fmt: skip


def spares_parts(source: str) -> bool:
    """Whether code mutates at most its arguments themselves, and none of their parts; True is
    certain, False is not.
    """
    return mutated_depth(source) == 0


@lru_cache(maxsize=256)
def mutated_depth(source: str) -> int | None:
    """How deep in its arguments code mutates something at most: 0 for these themselves, 1 for their
    parts too, such as the lists of a dict; None if it may be deeper.
    """
    code = parse_code(source)
    params = {each.arg for each in code.entry.args.args}
    others = [part for part in code.body if part is not code.entry]
    if any(_is_changing(found.item) for found in code.imports.values()):
        return None
    if any(_changes(node) for part in others for node in ast.walk(part)):
        return None
    if any(name in params for name in _bound_in(code.entry)):
        return None
    found = {_depth_of(each, params) for each in _changed_by(code.entry)}
    deepest: int | None = None if None in found else max(found, default=0)  # type: ignore[type-var]
    has_classes = any(isinstance(each, ast.ClassDef) for each in others)
    return None if deepest and has_classes else deepest  # `x[k]` of an object may be any part of it


def _depth_of(node: ast.AST, params: Collection[str | None]) -> int | None:
    """How deep in an argument what is mutated is: 1 for `d[k]` and `d.setdefault(k, x)`."""
    if isinstance(node, ast.Name):
        return 0 if node.id in params else None
    if isinstance(node, ast.Attribute):  # a method that mutates its object, and gives a part of it
        return _depth_of(node.value, params) if node.attr == "setdefault" else None
    is_part = isinstance(node, ast.Subscript)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_part, node = node.func.attr == "setdefault", node.func
    if not is_part:
        return None
    return 1 if _depth_of(node.value, params) == 0 else None  # type: ignore[attr-defined]


def _bound_in(function: ast.FunctionDef) -> Iterator[str | None]:
    """The names that are bound in a function to other objects than its arguments."""
    own = {id(each) for each in function.args.args}
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
    """What a function mutates; for what may mutate a part of something, the statement."""
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign):
            yield node.target
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node.value
        elif isinstance(node, (ast.Attribute, ast.Name)) and _changes(node):
            is_own = isinstance(node, ast.Attribute) and node.attr in _OWN
            yield node.value if is_own else node  # type: ignore[union-attr]
