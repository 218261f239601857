"""Finds the source of a function and its converted code.

A function's file is parsed and compiled as it is, and the part of the file around the function is
compiled converted too; neither is executed. A part is a statement of the module, such as a class.
The function's code is found among the originals by equality, which fails if the file was changed
after it was imported. Because functions are compiled in their context, free variables, `__class__`,
mangled names and decorators need no special handling.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import io
import linecache
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

from sgc.core.watching import unhooked, unwatched
from sgc.lang.turns import turn
from sgc.tracing.code.operator_names import TURN
from sgc.tracing.code.trees import CONVERTED
from sgc.tracing.convert.expressions import convert
from sgc.tracing.convert.loops.mapped import is_added
from sgc.tracing.convert.module_names import ModuleNames
from sgc.tracing.pieces.piece import NO_PIECES, Piece, Pieces

MAX_KEPT = 1 << 16
_kept: dict[
    tuple[int, Pieces], tuple[CodeType, CodeType]
] = {}  # by id, as comparing codes is slower
_counting: dict[int, tuple[CodeType, CodeType]] = {}  # by the id of `counted` code, with its origin
MAX_FILES = 256
_sources: dict[str, tuple[list[str], str]] = {}  # a file's lines, and its text

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


class NoSource(Exception):
    """There is no source for a function, or it does not match the running code."""


def converted(
    code: CodeType, names: dict[str, Any] | None = None, pieces: Pieces = NO_PIECES
) -> CodeType:
    """The converted code of a function; the code itself if it is converted already.

    names: the globals of its module, whose loader may have the source; pieces: those of its file
    that become code in the graph. Raises NoSource.
    """
    held, origin = _counting.get(id(code), (code, code))
    code = origin if held is code else code
    kept = _kept.get((id(code), pieces))
    if kept is not None and kept[0] is code:
        return kept[1]
    if CONVERTED.get(id(code)) is code:
        return code
    with unwatched():  # the program does not read its own source here
        found = _converted(code, names, pieces)
    if len(_kept) >= MAX_KEPT:
        _kept.clear()
    _kept[id(code), pieces] = code, found
    return found


def counted(function: FunctionType) -> FunctionType:
    """A function that counts the turns of its loops, for `max_turns`; and the function that it
    wraps, if it is a decorator's. Raises NoSource."""
    vars(builtins)[TURN] = turn  # the modules' own globals must not change
    pieces = Pieces(are_all=True, are_counted=True)
    code = converted(function.__code__, function.__globals__, pieces)
    if len(_counting) >= MAX_KEPT:
        _counting.clear()
    _counting[id(code)] = code, function.__code__
    wrapped = getattr(function, "__wrapped__", None)
    cells = [_counted_in(cell, wrapped) for cell in function.__closure__ or ()]
    copy = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, tuple(cells) or None
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__, copy.__annotations__ = function.__dict__, function.__annotations__
    return copy


def _counted_in(cell: CellType, wrapped: Any) -> CellType:
    """The cell of a closure; if it holds the wrapped function, one that counts."""
    held = [cell] == [CellType(wrapped)]  # an empty cell is equal to no other
    return CellType(counted(wrapped)) if held and isinstance(wrapped, FunctionType) else cell


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


@unhooked
def _converted(code: CodeType, names: dict[str, Any] | None, pieces: Pieces) -> CodeType:
    if is_added(code):  # conversion has made it
        return code
    source = _source(code.co_filename, names)
    if not source:
        raise NoSource("there is no source for it")
    flags = code.co_flags & _FUTURES
    for is_apart in (False, True):
        codes = _near(code, source, flags, is_apart, pieces)
        if code in codes:
            return _with_sets_of(code, codes[code])
        if code in codes.values():
            return code
    codes = _near(code, source, flags, False, pieces)
    # pytest has rewritten a function with an `assert`: it is found by its name and line.
    if any(name.startswith("@py") for name in (*code.co_varnames, *code.co_names)):
        alike = [its for original, its in codes.items() if _head(original) == _head(code)]
        if len(alike) == 1:
            return _with_sets_of(code, alike[0])
    raise NoSource("its file was changed since it was imported")


def _head(code: CodeType) -> tuple[object, ...]:
    n_arguments = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:n_arguments]
    return code.co_qualname, code.co_firstlineno, names, code.co_freevars


def _near(
    code: CodeType, source: str, flags: int, is_apart: bool, pieces: Pieces
) -> Mapping[CodeType, CodeType]:
    """The converted code of each function in the same part of a file, by its original code."""
    try:
        file = _file(code.co_filename, source, flags, is_apart)
        part = file.part_at(code.co_firstlineno)
        if part is None:
            return {}
        return _codes(file, part, pieces.within(part.has))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NoSource(f"its source cannot be read: {error}") from error


@dataclass(eq=False, slots=True)
class _Part:
    """Statements of a module that begin on lines of their own: the first and last line, and the
    code of the functions in them."""

    first: int
    last: int
    codes: list[CodeType] = field(default_factory=list)

    def has(self, line: int) -> bool:
        return self.first <= line <= self.last


@dataclass(frozen=True, eq=False, slots=True)
class _File:
    """A file's parts and lines; names: what decides how it is converted."""

    name: str
    flags: int
    lines: list[str]
    parts: list[_Part]
    names: ModuleNames

    def part_at(self, line: int) -> _Part | None:
        n = bisect_right(self.parts, line, key=lambda part: part.first) - 1
        return self.parts[n] if n >= 0 and self.parts[n].has(line) else None


@lru_cache(maxsize=64)
def _file(filename: str, source: str, flags: int, is_apart: bool) -> _File:
    """A file with its functions' original codes. is_apart: each statement is compiled by itself, as
    in notebooks: a function's code depends on its module's imports."""
    tree = ast.parse(source)
    file = _File(
        filename,
        flags,
        io.StringIO(source, newline=None).readlines(),
        _parts(tree),
        ModuleNames.of(tree),
    )
    for each in [ast.Module([each], []) for each in tree.body] if is_apart else [tree]:
        for code in _inside(compile(each, filename, "exec", flags, dont_inherit=True)):
            if (part := file.part_at(code.co_firstlineno)) is not None:
                part.codes.append(code)
    return file


def _parts(tree: ast.Module) -> list[_Part]:
    found: list[_Part] = []
    for each in tree.body:
        first = min([each.lineno, *(d.lineno for d in getattr(each, "decorator_list", ()))])
        last = each.end_lineno or first
        if found and first <= found[-1].last:
            found[-1].last = max(last, found[-1].last)
        else:
            found.append(_Part(first, last))
    return found


@lru_cache(maxsize=512)
def _codes(file: _File, part: _Part, pieces: Pieces) -> Mapping[CodeType, CodeType]:
    """The converted code of each function of a part, by its original code."""
    text = "\n" * (part.first - 1) + "".join(file.lines[part.first - 1 : part.last])
    tree = convert(ast.parse(text), file.names, pieces)
    made = compile(tree, file.name, "exec", file.flags, dont_inherit=True)
    codes = dict(_pairs(part.codes, _inside(made)))
    if not _is_plain(pieces):
        _note(codes.values())
    return codes


def _is_plain(pieces: Pieces) -> bool:
    """Whether code with these pieces is the program's own that only counts turns."""
    return pieces.are_all and pieces.are_counted and not pieces.in_python


def _note(codes: Iterable[CodeType]) -> None:
    if len(CONVERTED) >= MAX_KEPT:
        CONVERTED.clear()
    CONVERTED.update((id(each), each) for each in codes)


def _with_sets_of(code: CodeType, made: CodeType) -> CodeType:
    """The converted code with the sets of constants of the code that runs. Equal ones may differ in
    their order: one that was read from a `.pyc` file has another than one that was just compiled.
    """
    sets: dict[object, frozenset[Any]] = {}
    for each in _sets(code):
        known = sets.setdefault(_set_key(each), each)
        if [*known] != [*each]:
            raise NoSource("equal sets of constants have different orders in it")
    if not sets:
        return made

    def with_sets(made: CodeType) -> CodeType:
        constants: list[Any] = []
        for each in made.co_consts:
            if isinstance(each, CodeType):
                constants.append(with_sets(each))
            else:
                is_set = type(each) is frozenset
                constants.append(sets.get(_set_key(each), each) if is_set else each)
        found = made.replace(co_consts=tuple(constants))
        if CONVERTED.get(id(made)) is made:
            _note([found])
        return found

    return with_sets(made)


def _sets(code: CodeType) -> Iterator[frozenset[Any]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _sets(each)
        elif type(each) is frozenset:
            yield each


def _set_key(items: frozenset[Any]) -> object:
    """Equal for sets of equal constants of the same types."""
    return frozenset((type(each), repr(each)) for each in items)


def _pairs(originals: list[CodeType], made: list[CodeType]) -> Iterator[tuple[CodeType, CodeType]]:
    """Each code with its converted code. What is taken out of a comprehension comes before it, so
    that codes of one line may be in another order."""
    left = [(_shape(each), each) for each in made]
    for original in originals:
        shape = _shape(original)
        n = next((n for n, (its, _) in enumerate(left) if its == shape), None)
        if n is None:
            raise ValueError(f"line {original.co_firstlineno} has no counterpart")
        _, its = left.pop(n)
        yield original, its
        yield from _pairs(_inside(original), _inside(its))
    if left:
        raise ValueError(f"line {left[0][1].co_firstlineno} is there twice")


def _shape(code: CodeType) -> tuple[Any, ...]:
    """What a code has in common with its converted code."""
    inner = sorted(map(_shape, _inside(code)))
    return code.co_name, code.co_firstlineno, code.co_argcount, *inner


def _inside(code: CodeType) -> list[CodeType]:
    """The functions directly inside a code object, except generators that conversion has added."""
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return [each for each in inside if not is_added(each)]


def function_of(piece: Piece, names: Mapping[str, Any]) -> FunctionType:
    """A piece of a program as a function of its inputs. names: the globals of its module."""
    (plain,) = piece.plain.body if isinstance(piece.plain, ast.Module) else (piece.plain,)
    body = [plain] if isinstance(plain, ast.stmt) else []
    given = [ast.Name(name, ast.Load()) for name in piece.writes] if body else [plain]
    entry = ast.parse(f"def piece({', '.join(piece.inputs)}): pass").body[0]
    assert isinstance(entry, ast.FunctionDef)
    entry.body = [*body, *(ast.Return(each) for each in given)]  # type: ignore[arg-type]
    tree = ast.fix_missing_locations(ast.Module([entry], []))
    (code,) = _inside(compile(tree, piece.filename, "exec", dont_inherit=True))
    assert isinstance(names, dict)
    return FunctionType(code, names, "piece")
