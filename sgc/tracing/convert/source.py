"""Finds the source of a function and its converted code.

A function's whole file is parsed, and compiled with and without conversion; neither is executed.
The function's code is found among the originals by equality, which fails if the file was changed
after it was imported. Because functions are compiled in their context, free variables, `__class__`,
mangled names and decorators need no special handling.
"""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from types import CodeType
from typing import Any

from sgc.core.watching import unwatched
from sgc.tracing.convert.expressions import convert
from sgc.tracing.convert.mapped import is_added
from sgc.tracing.pieces.piece import Piece

MAX_KEPT = 1 << 16
_kept: dict[
    tuple[int, frozenset[Piece]], tuple[CodeType, CodeType]
] = {}  # by id, as comparing codes is slower
_made: dict[int, CodeType] = {}  # converted codes, by id
MAX_FILES = 256
_sources: dict[str, tuple[list[str], str]] = {}  # a file's lines, and its text

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


_Codes = tuple[Mapping[CodeType, CodeType], Set[CodeType]]


class NoSource(Exception):
    """There is no source for a function, or it does not match the running code."""


def converted(
    code: CodeType, names: dict[str, Any] | None = None, pieces: frozenset[Piece] = frozenset()
) -> CodeType:
    """The converted code of a function; the code itself if it is converted already.

    names: the globals of its module, whose loader may have the source; pieces: pieces of its file
    that become code in the graph. Raises NoSource.
    """
    kept = _kept.get((id(code), pieces))
    if kept is not None and kept[0] is code:
        return kept[1]
    if _made.get(id(code)) is code:
        return code
    with unwatched():  # the program does not read its own source here
        found = _converted(code, names, pieces)
    if len(_kept) >= MAX_KEPT:
        _kept.clear()
    _kept[id(code), pieces] = code, found
    return found


def _source(filename: str, names: dict[str, Any] | None) -> str:
    """The text of a file; the same object as long as the file does not change."""
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, names)
    kept = _sources.get(filename)
    if kept is not None and kept[0] is lines:
        return kept[1]
    if len(_sources) >= MAX_FILES:
        _sources.clear()
    _sources[filename] = lines, "".join(lines)
    return _sources[filename][1]


def _converted(code: CodeType, names: dict[str, Any] | None, pieces: frozenset[Piece]) -> CodeType:
    source = _source(code.co_filename, names)
    if not source:
        raise NoSource("there is no source for it")
    flags = code.co_flags & _FUTURES
    for is_apart in (False, True):
        codes, made = _codes(code.co_filename, source, flags, is_apart, pieces)
        if code in codes:
            return codes[code]
        if code in made:
            return code
    codes, _ = _codes(code.co_filename, source, flags, False, pieces)
    # pytest has rewritten a function with an `assert`: it is found by its name and line.
    if any(name.startswith("@py") for name in (*code.co_varnames, *code.co_names)):
        alike = [its for original, its in codes.items() if _head(original) == _head(code)]
        if len(alike) == 1:
            return alike[0]
    raise NoSource("its file was changed since it was imported")


def _head(code: CodeType) -> tuple[object, ...]:
    n_arguments = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:n_arguments]
    return code.co_qualname, code.co_firstlineno, names, code.co_freevars


@lru_cache(maxsize=64)
def _codes(
    filename: str, source: str, flags: int, is_apart: bool, pieces: frozenset[Piece]
) -> _Codes:
    """The converted code of each function of a file, by its original code; and all converted codes.

    is_apart: each statement is compiled by itself, as in notebooks: a function's code depends on
    its module's imports.
    """
    pairs: dict[CodeType, CodeType] = {}
    try:
        trees = ast.parse(source), convert(ast.parse(source), pieces)
        parts = zip(*(_parts(tree, is_apart) for tree in trees), strict=True)
        for part in parts:
            original, made = (
                compile(tree, filename, "exec", flags, dont_inherit=True) for tree in part
            )
            pairs.update(_pairs(original, made))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NoSource(f"its source cannot be read: {error}") from error
    if len(_made) >= MAX_KEPT:
        _made.clear()
    _made.update((id(each), each) for each in pairs.values())
    return pairs, frozenset(pairs.values())


def _parts(tree: ast.Module, is_apart: bool) -> list[ast.Module]:
    return [ast.Module([each], []) for each in tree.body] if is_apart else [tree]


def _pairs(original: CodeType, made: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    nested = zip(_inside(original), _inside(made), strict=True)
    for inner, its in nested:
        yield inner, its
        yield from _pairs(inner, its)


def _inside(code: CodeType) -> list[CodeType]:
    """The functions directly inside a code object, except generators that conversion has added."""
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return [each for each in inside if not is_added(each)]
