"""The operator that converted code calls for a piece of the program that runs in Python."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from itertools import repeat
from types import FrameType
from typing import TYPE_CHECKING, Any

from sgc.core.session import current_session
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.code import CodeError, parse_code
from sgc.ir.code_names import BUILTINS
from sgc.ir.graph import Lit
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import (
    OBJECT,
    annotation_of,
    plain,
)
from sgc.tracing.operators.code.pieces import FIXED, code_type, given_type
from sgc.tracing.pieces.in_python import InPython, PiecesInPython, may_be_in_python
from sgc.tracing.pieces.made import Pieced, WrongGuess
from sgc.tracing.pieces.owned import (
    is_changeable,
)
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.values.abstract import (
    abstract,
)

if TYPE_CHECKING:
    pass


# In the trace check, the results of pieces in an interpreted run, by key and inputs.
Scripted = Callable[[str, tuple[Any, ...]], Any]
scripting: ContextVar[Scripted | None] = ContextVar("sgc_scripted_pieces", default=None)


def in_python(key: str, *values: Any) -> Any:
    """The value of a piece that runs in Python, or of the variable that it sets."""
    scripted = scripting.get()
    if scripted is not None:
        return scripted(key, values)
    return _in_python(current_session(), key, values, sys._getframe(1))


@unhooked
def _in_python(session: Any, key: str, values: tuple[Any, ...], frame: FrameType) -> Any:
    known: PiecesInPython = session.sites.in_python
    found = known.found[key]
    names = session.originals(frame.f_globals)
    gives, may_be = _given_in_python(found, values, names)
    is_sure = may_be and (not known.is_sure or _is_sure(found.piece, gives, values))
    if not is_sure or not may_be_in_python(found.piece, names, values):
        if session.sites.is_guessed:
            session.end(WrongGuess("it takes or may return a value that is not data"))
        del known.found[key]
        known.refused.add(key)
        session.end(Pieced("it takes or may return a value that is not data"))
    fields: dict[str, Any] = {"args": tuple(map(session.operand, values))}
    if gives != OBJECT:
        fields["gives"] = Lit(annotation_of(gives))
    known.gives[key] = plain(gives)
    (value,) = session.emit(
        "host", [("v", gives)],
        name=Lit(found.impl.name), keys=tuple(map(Lit, found.piece.inputs)),
        source=Lit(found.impl.signature), **fields,
    )  # fmt: skip
    session.raise_failed(value)
    return session.seen(abstract(value, session))


def _is_sure(piece: Piece, gives: Type, values: Sequence[Any]) -> bool:
    """Whether a piece certainly returns data, or returns nothing and changes none of its inputs."""
    if piece.is_statement and not piece.writes:
        return not any(map(is_changeable, values))
    is_truth = gives == types.BOOL or gives.item == types.BOOL
    return gives != OBJECT and (not is_truth or _is_truth(piece.plain))


def _is_truth(plain: ast.AST) -> bool:
    """Whether an expression of type bool certainly returns True or False: a comparison may return
    anything, for example an array of numpy."""
    value = getattr(plain, "value", plain)
    if isinstance(value, ast.Compare):
        return all(isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in value.ops)
    return isinstance(value, (ast.UnaryOp, ast.Call))


def _given_in_python(
    found: InPython, values: Sequence[Any], names: Mapping[str, Any]
) -> tuple[Type, bool]:
    """The type of a piece's result, as far as the syntax tells (a library may return anything), and
    whether the result may be data. names: the globals of the piece's function."""
    from sgc.tracing.inference.infer import inferred  # loads many modules

    sets = [name for name in found.outer if type(names.get(name)) in (set, frozenset)]
    libraries = [name for name in found.outer if name not in (*BUILTINS, *sets)]
    source = ast.unparse(found.piece.plain)
    if found.piece.is_statement:
        lines = [*source.splitlines(), *(f"return {name}" for name in found.piece.writes)]
    else:
        lines = [f"return {source}"]
    head = f"def piece({', '.join([*found.piece.inputs, *libraries])}):"
    lines[:0] = (f"{name} = set()" for name in sets)
    given = [code_type(given_type(each)) for each in values]
    try:
        code = parse_code("\n    ".join([head, *lines]))
    except CodeError:
        return OBJECT, True
    it = inferred(code, (*given, *repeat(OBJECT, len(libraries))))
    is_known = it.type in FIXED or it.type.item in FIXED
    return it.type if is_known else OBJECT, not (it.is_set or it.has_iterator)
