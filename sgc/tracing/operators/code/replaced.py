"""The inputs of a piece that lose their only reference, a variable that the piece sets anew."""

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
    """The inputs that nothing refers to after a piece, because it has set their variables anew."""
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
    """The inputs, among the program's own lists, that a result of code may be. If the code first
    copies them, nothing else refers to the result. types: the types of the code's arguments."""
    from sgc.tracing.inference.infer import inferred  # loads many modules

    may_be = inferred(parse_code(code.code), types).may_be
    numbers = frozenset[int]().union(*(each or () for each in may_be))
    return frozenset(code.inputs[n] for n in numbers if _is_own_list(session, code.args[n]))


def _is_own_list(session: Any, value: Any) -> bool:
    if isinstance(value, AbstractList):
        return value.symbol.type.item is not None and bool(session.is_made(value.symbol))
    return type(value) is list
