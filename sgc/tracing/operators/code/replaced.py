"""The inputs of a piece that one variable alone has, which gets another value by the piece."""

from __future__ import annotations

from itertools import repeat
from types import FrameType
from typing import Any

from sgc.ir.code import parse_code
from sgc.tracing.pieces.made import Made
from sgc.tracing.pieces.owned import is_owned
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.values.abstract import AbstractList


def replaced(
    session: Any, found: Piece, values: tuple[Any, ...], frame: FrameType
) -> frozenset[str]:
    """The inputs that nothing has when a piece has run, as their variables have other values."""
    code = frame.f_code
    names = found.replaced & {*code.co_varnames} - {*code.co_cellvars}
    if not names:
        return frozenset()
    alone = [*map(is_owned, values, repeat(False), repeat(frame), repeat(session), repeat(True))]
    return frozenset(
        name
        for name, value, is_alone in zip(found.inputs, values, alone, strict=True)
        if is_alone and name in names and not session.held.count(value)
    )


def copied_first(session: Any, code: Made, types: tuple[Any, ...]) -> frozenset[str]:
    """The inputs that a result of code may be: the program's own lists. Code that begins with a
    copy of each gives a list that nothing else has. types: of the code's arguments."""
    from sgc.tracing.inference.infer import inferred  # loads many modules

    may_be = inferred(parse_code(code.code), types).may_be
    numbers = frozenset[int]().union(*(each or () for each in may_be))
    return frozenset(code.inputs[n] for n in numbers if _is_own_list(session, code.args[n]))


def _is_own_list(session: Any, value: Any) -> bool:
    if isinstance(value, AbstractList):
        return value.symbol.type.item is not None and bool(session.is_made(value.symbol))
    return type(value) is list
