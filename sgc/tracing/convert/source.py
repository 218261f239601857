"""Finds the source of a function and its converted code.

The file that a function is from is parsed and converted as a whole, and compiled both ways; neither
is executed. A function's code is looked up among the originals by equality, which also tells that
the file was changed after it was imported. Compiled in their context, free variables, `__class__`,
mangled names and decorators need no code here.
"""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from types import CodeType

from sgc.tracing.convert.expressions import convert
from sgc.tracing.hook import unwatched

MAX_KEPT = 4096
_kept: dict[int, tuple[CodeType, CodeType]] = {}  # by identity, which is quicker than equality

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


_Codes = tuple[Mapping[CodeType, CodeType], Set[CodeType]]


class NoSource(Exception):
    """There is no source for a function, or it is another than what runs."""


def converted(code: CodeType) -> CodeType:
    """The converted code of a function; its own where it is converted already.

    Raises NoSource.
    """
    kept = _kept.get(id(code))
    if kept is not None and kept[0] is code:
        return kept[1]
    with unwatched():  # reading its own source is no read of the program's
        found = _converted(code)
    if len(_kept) >= MAX_KEPT:
        _kept.clear()
    _kept[id(code)] = code, found
    return found


def _converted(code: CodeType) -> CodeType:
    linecache.checkcache(code.co_filename)
    source = "".join(linecache.getlines(code.co_filename))
    if not source:
        raise NoSource("there is no source for it")
    codes, made = _codes(code.co_filename, source, code.co_flags & _FUTURES)
    if code in codes:
        return codes[code]
    if code in made:
        return code
    # A function with an `assert` in it, which pytest has rewritten.
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
def _codes(filename: str, source: str, flags: int) -> _Codes:
    """The converted code of each function of a file; and those that are converted."""
    try:
        original, made = (
            compile(tree, filename, "exec", flags, dont_inherit=True)
            for tree in (ast.parse(source), convert(ast.parse(source)))
        )
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NoSource(f"its source cannot be read: {error}") from error
    pairs = dict(_pairs(original, made))
    return pairs, frozenset(pairs.values())


def _pairs(original: CodeType, made: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    nested = zip(_inside(original), _inside(made), strict=True)
    for inner, its in nested:
        yield inner, its
        yield from _pairs(inner, its)


def _inside(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
