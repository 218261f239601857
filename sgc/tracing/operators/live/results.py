"""The types of the results of code on live objects: texts, numbers, bools, and all else live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgc.ir import types
from sgc.ir.code import parse_code
from sgc.ir.types import Type
from sgc.tracing.inference.infer import inferred
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.values.abstract import AbstractNumber, AbstractText, is_abstract, marked
from sgc.tracing.values.items import type_of
from sgc.tracing.values.live.abstract_live import AbstractLive

FIXED = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def gives_of(code: str, args: Sequence[Any], n: int = 1) -> tuple[Type, ...]:
    """The types of the `n` results of code."""
    known = inferred(parse_code(code), tuple(map(_type, args)))
    if n == 1:
        return (_result(known.type),)
    return tuple(map(_result, known.items))


def _result(type_: Type) -> Type:
    return type_ if type_ in FIXED else types.LIVE


def _type(value: Any) -> Type:
    """The type of an argument as code sees it."""
    if isinstance(value, AbstractText) or marked(value):
        return types.TEXT
    if isinstance(value, AbstractNumber):
        return value.symbol.type
    if isinstance(value, AbstractLive) or is_abstract(value):
        return OBJECT
    found = type_of(value)
    return found if found in FIXED else OBJECT
