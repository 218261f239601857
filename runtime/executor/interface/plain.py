"""Plain data: the values that a program and its tools exchange, and that a log holds.

They are texts, finite numbers, bools, None, lists, and dicts with texts as keys. Values are copied:
a tool that changes its arguments changes nothing in the program.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from sgc.ir.types import Kind, Type

MAX_BYTES = 10 * 1024 * 1024  # of a value as JSON
MAX_DEPTH = 64


def plain_copy(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Copies plain data, tuples as lists; raises TypeError or ValueError for other things."""
    if depth == 0:
        raise ValueError(f"it nests deeper than {MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number of JSON")
        return float(value)
    if isinstance(value, (list, tuple)):
        return [plain_copy(item, depth - 1) for item in value]
    if isinstance(value, Mapping):
        return {_key(key): plain_copy(item, depth - 1) for key, item in value.items()}
    raise TypeError(f"a {type(value).__name__} is not a text, number, bool, list or dict")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a dict's key must be a text, found {key!r}")
    return str(key)


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Any) -> str:
    """Returns the JSON text of plain data; equal data have equal texts."""
    return _canonical(value)


def checked(value: Any, type_: Type) -> Any:
    """Copies plain data; raises TypeError or ValueError if it is not of the given type."""
    found = plain_copy(value)
    converted = _CONVERTED[type_.kind](found) if type_.kind in _CONVERTED else found
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        if not isinstance(found, list):
            raise TypeError(f"found a {type(value).__name__}")
        converted = [checked(item, type_.item) for item in found]
    n_bytes = len(canonical(converted))
    if n_bytes > MAX_BYTES:
        raise ValueError(f"it has {n_bytes} bytes as JSON; at most {MAX_BYTES} are taken")
    return converted


def _only(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"found a {type(value).__name__}")
        return value

    return check


def _float(value: Any) -> float:
    return _only(float)(float(value) if type(value) is int else value)  # type: ignore[no-any-return]


_CONVERTED: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.TEXT: _only(str),
    Kind.INT: _only(int),
    Kind.FLOAT: _float,
    Kind.BOOL: _only(bool),
}
