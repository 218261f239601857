"""Which dicts of a module, of those whose keys its source writes, may be changed by such keys while
others hold them: they become parts of lists and dicts, or have a key that the module changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

# The places of such dicts, each with its keys.
Rows = Mapping[tuple[int, int], tuple[str, ...]]


def changed_keys(module: ast.Module) -> frozenset[str]:
    """The keys, as its source writes them, by which a module changes dicts."""
    return frozenset(_changed_keys(ast.walk(module)))


def rows_of(module: ast.Module) -> Rows:
    """The rows of a module."""
    nodes, changed = [*ast.walk(module)], changed_keys(module)
    if not changed:
        return {}
    return {
        place_of_row(each): keys_of_row(each)
        for node in nodes
        if isinstance(node, _FUNCTIONS)
        for each in _Found(changed, {*_held_names(node)}).within(node)
    }


def keys_of_row(display: ast.Dict) -> tuple[str, ...]:
    """The keys of a dict that its source writes."""
    return tuple(key for key in _keys_of(display) if type(key) is str)


def place_of_row(display: ast.Dict) -> tuple[int, int]:
    return display.lineno, display.col_offset


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAKING = frozenset({"append", "appendleft", "insert", "setdefault"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_RETURNING = (ast.Return, ast.Yield)


class _Found:
    """changed: the keys that the module changes; held: variables that become parts of others."""

    def __init__(self, changed: frozenset[str], held: set[str]) -> None:
        self._changed, self._held = changed, held

    def within(self, function: ast.AST) -> Iterator[ast.Dict]:
        for node in _inside(function):
            for name, field in ast.iter_fields(node):
                for each in field if isinstance(field, list) else [field]:
                    is_one = isinstance(each, ast.Dict) and _is_keyed(each)
                    if is_one and self._may_be_row(each, node, name):
                        yield each

    def _may_be_row(self, display: ast.Dict, holder: ast.AST, field: str) -> bool:
        if isinstance(holder, (ast.Subscript, ast.Attribute, ast.Compare, ast.keyword)):
            return isinstance(holder, ast.keyword) and self._is_changed(display)
        if isinstance(holder, ast.Call):
            method = getattr(holder.func, "attr", "")
            return method in _MAKING or self._is_changed(display)
        if isinstance(holder, (ast.Assign, ast.AnnAssign)):
            targets = holder.targets if isinstance(holder, ast.Assign) else [holder.target]
            is_held = any(_name_of(each) in self._held for each in targets)
            is_held = is_held or any(not isinstance(each, ast.Name) for each in targets)
            return is_held or self._is_changed(display)
        is_part = isinstance(holder, (ast.List, ast.Tuple, ast.Dict, ast.DictComp, *_RETURNING))
        is_part = is_part or (isinstance(holder, _COMPREHENSIONS) and field == "elt")
        return is_part or self._is_changed(display)

    def _is_changed(self, display: ast.Dict) -> bool:
        return not self._changed.isdisjoint(_keys_of(display))


def _inside(function: Any) -> Iterator[ast.AST]:
    """The nodes of a function, but not those of functions in it, its annotations, and what the
    words of the language are given."""
    left: list[Any] = [*function.body]
    while left:
        node = left.pop()
        yield node
        hidden = (getattr(node, "annotation", None),)
        for each in ast.iter_child_nodes(node):
            is_word = isinstance(each, ast.Call) and _is_word(each.func)
            if each not in hidden and not isinstance(each, _FUNCTIONS) and not is_word:
                left.append(each)


def _is_word(function: ast.expr) -> bool:
    of = function.value if isinstance(function, ast.Attribute) else function
    return isinstance(of, ast.Name) and of.id in ("sgc", "gen", "json")


def _is_keyed(display: ast.Dict) -> bool:
    keys = [*_keys_of(display)]
    is_known = all(key is None or isinstance(key, ast.Constant) for key in display.keys)
    return bool(keys) and is_known and all(type(key) is str for key in keys)


def _keys_of(display: ast.Dict) -> Iterator[Any]:
    return (key.value for key in display.keys if isinstance(key, ast.Constant))


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _held_names(function: ast.AST) -> Iterator[str]:
    """The variables whose values become parts of lists or dicts, or are returned."""
    for node in ast.walk(function):
        given: Iterable[Any] = ()
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _MAKING:
            given = node.args
        elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load):
            given = node.elts
        elif isinstance(node, ast.Dict):
            given = node.values
        elif isinstance(node, (*_RETURNING, ast.DictComp)):
            given = [node.value]
        elif isinstance(node, _COMPREHENSIONS):
            given = [node.elt]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            given = [node.value]
        yield from (each.id for each in given if isinstance(each, ast.Name))


def _changed_keys(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The constants `k` of `x["k"] = v`, `x["k"] += v`, `x["k"].append(v)` and the like."""
    for node in nodes:
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from _keys_on(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _CHANGING:
                yield from _keys_on(node.func.value)
            if node.func.attr == "update":
                yield from (each.arg for each in node.keywords if each.arg)


_CHANGING = frozenset(
    {"add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "sort", "update"}
)


def _keys_on(node: ast.expr) -> Iterator[str]:
    """The constants on the way to a part of something."""
    while isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
            yield node.slice.value
        node = node.value


@lru_cache(maxsize=256)
def row_keys(module: ast.Module) -> frozenset[tuple[str, ...]]:
    """The keys of a module's rows."""
    return frozenset(rows_of(module).values())


@lru_cache(maxsize=1024)
def copies_dicts(code: str) -> bool:
    """Whether some code has `dict(x)` or `{**x}`."""
    return any(map(_copies_dict, ast.walk(ast.parse(code))))


def _copies_dict(node: ast.AST) -> bool:
    if isinstance(node, ast.Dict):
        return None in node.keys
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    is_made = is_call and node.func.id == "dict"  # type: ignore[attr-defined]
    return is_made and any(isinstance(each, ast.Name) for each in node.args)  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def displays_in(code: str) -> frozenset[tuple[str, ...]]:
    """The keys of the dicts that some code makes."""
    found = (each for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Dict))
    return frozenset(keys_of_row(each) for each in found if None not in each.keys)
