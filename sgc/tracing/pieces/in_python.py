"""Pieces of a program that run in Python, because they become neither nodes nor code.

Such a piece calls only libraries: a function of the program's own is traced, and where the trace
stops in it is a smaller piece. A piece takes and returns data.
"""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from sgc.core.places import is_users_module
from sgc.ir.types import Type
from sgc.runtime.executor.interface.tools import ToolImpl
from sgc.tracing.code.trees import tree_of
from sgc.tracing.kinds.row_types import RecordType, holds_states
from sgc.tracing.pieces.effects.changes import changed_roots, made_inside
from sgc.tracing.pieces.forms import is_operand
from sgc.tracing.pieces.names import names_of
from sgc.tracing.pieces.owned import is_changeable
from sgc.tracing.pieces.piece import Piece, is_tested
from sgc.tracing.values.items import type_of

MAX_PIECES = 20
# Builtins that see the calling frame, print something, or run code that is no piece.
_REFUSED = frozenset({
    "__import__", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "exit", "getattr",
    "globals", "id", "input", "locals", "open", "print", "quit", "setattr", "super", "vars",
})  # fmt: skip
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)

# Makes a function of a piece, over the globals of its module.
MakesFunction = Callable[[Piece, Mapping[str, Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class InPython:
    """A piece that runs in Python. impl: the piece as a function that a run calls; outer: the names
    of libraries and builtins that the piece reads.
    """

    piece: Piece
    impl: ToolImpl
    outer: tuple[str, ...]


@dataclass(slots=True)
class PiecesInPython:
    """The pieces of a program, and of the programs that it maps, that run in Python, by key.

    is_sure: whether the syntax must make it certain that a piece returns data; otherwise a run may
    end with an error there. gives: the types of the results in the graph; refused: keys of pieces
    that turned out not to be possible. is_noting: whether a piece is not taken, but sets `noted`.
    """

    is_sure: bool = False
    found: dict[str, InPython] = field(default_factory=dict)
    gives: dict[str, Type] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    is_noting: bool = False
    noted: bool = False

    def places(self, filename: str) -> frozenset[Piece]:
        """The pieces in a file."""
        pieces = (each.piece for each in self.found.values())
        return frozenset(each for each in pieces if each.filename == filename)

    @property
    def impls(self) -> tuple[ToolImpl, ...]:
        return tuple(each.impl for each in self.found.values())


def may_be_in_python(piece: Piece, names: Mapping[str, Any], values: Sequence[Any]) -> bool:
    """Whether a piece takes data and calls only libraries. names: the globals of its function;
    values: the values of its inputs."""
    node = piece.node
    if not isinstance(node, (ast.expr, *_SIMPLE)) or isinstance(node, ast.Constant):
        return False
    if not all(map(_is_data, values)):
        return False
    given = dict(zip(piece.inputs, values, strict=True))
    if any(is_changeable(given[name]) for name in piece.changes):
        return False
    if piece.hoisted or len(piece.writes) > 1:
        return False
    parts = [*ast.walk(node)]
    if any(isinstance(each, (ast.Await, ast.NamedExpr)) for each in parts):
        return False
    if not any(isinstance(each, ast.Call) for each in parts):
        return False  # without a call of a library, the result would be no better known
    outer = _outer(piece)
    changed = {*changed_roots(piece.plain, made_inside(piece.plain))}
    if any(root in outer and _is_data_of(names, root) for root in changed):
        return False  # the rest of the program would not see the change
    return all(_is_librarys(name, names) for name in outer)


def _is_data_of(names: Mapping[str, Any], root: str | None) -> bool:
    return isinstance(names.get(root or ""), (list, dict, set, deque, bytearray))


def _outer(piece: Piece) -> tuple[str, ...]:
    found = names_of([piece.plain])
    return tuple(sorted(found.reads - found.writes - set(piece.inputs)))


def _is_data(value: Any) -> bool:
    if not is_operand(value):
        return False
    type_ = type_of(value)
    return not isinstance(type_, RecordType) and not holds_states(type_)


def _is_librarys(name: str, names: Mapping[str, Any]) -> bool:
    """Whether a name refers to a library's object, or to data."""
    if name not in names:
        return hasattr(builtins, name) and name not in _REFUSED
    value = names[name]
    if isinstance(value, ModuleType):
        module, file = value.__name__, getattr(value, "__file__", None) or ""
    else:
        kind = value if isinstance(value, type) or callable(value) else type(value)
        module = getattr(kind, "__module__", None) or type(value).__module__
        code = getattr(value, "__code__", None)
        file = code.co_filename if code is not None else _file_of(module)
    if module == "builtins":
        return name not in _REFUSED
    return module.partition(".")[0] != "sgc" and not is_users_module(module, file)


def _file_of(module: str) -> str:
    import sys

    return getattr(sys.modules.get(module), "__file__", None) or "<frozen"


def in_python(
    piece: Piece,
    names: Mapping[str, Any],
    made: MakesFunction,
) -> InPython:
    """A piece that runs in Python. names: the globals of its function."""
    tree = tree_of(piece.filename)
    if isinstance(piece.plain, ast.Compare) and tree is not None and is_tested(piece.node, tree):
        # Only its truth is used, so its value need not be a bool.
        negated = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), piece.plain))
        piece = replace(piece, plain=ast.fix_missing_locations(negated))
    line, column, *_ = piece.place
    name = f"{Path(piece.filename).stem}:{line}:{column}"
    impl = ToolImpl(name, ast.unparse(piece.node), made(piece, names))
    return InPython(piece, impl, _outer(piece))
