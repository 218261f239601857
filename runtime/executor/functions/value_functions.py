"""Functions of lists, of JSON values, and of values of any type."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from sgc.errors import ProgramError
from sgc.runtime.executor.functions.own_texts import put_together
from sgc.runtime.executor.interface.value_limits import MAX_TEXT, LimitExceeded, check_length

MAX_NESTING = 500  # of JSON: Python's own limit depends on how deep its caller is

TYPES: dict[str, type] = {
    "NoneType": type(None),
    "bool": bool,
    "dict": dict,
    "float": float,
    "int": int,
    "list": list,
    "str": str,
    "tuple": tuple,
}


def _as(value: Any, name: str, attribute: str) -> Any:
    if type(value) is not TYPES[name]:
        raise AttributeError(f"{type(value).__name__!r} object has no attribute {attribute!r}")
    return value


def _concat(left: Any, right: Any) -> str:
    result = left + right
    check_length(len(result))
    return put_together([left, right])


def _item(value: Any, key: Any) -> Any:
    if isinstance(value, defaultdict) and key not in value:
        raise ProgramError(
            f"{key!r} is no key of a defaultdict, and reading it would make it one",
            hint="read it with get(), or run the program with --interpret",
        )
    return value[key]


def _unpack(value: list[Any], n: int) -> list[Any]:
    if len(value) < n:
        raise ValueError(f"not enough values to unpack (expected {n}, got {len(value)})")
    if len(value) > n:
        raise ValueError(f"too many values to unpack (expected {n})")
    return value


def _loads(text: str) -> Any:
    check_length(len(text))
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise LimitExceeded("a JSON text is nested too deeply") from error
    _check_nesting(value)
    return value


def _check_nesting(value: Any) -> None:
    """Raises LimitExceeded for values nested too deeply for Python to write or compare."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise LimitExceeded(f"a JSON text is nested more than {MAX_NESTING} levels deep")
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]


def _dumps(
    value: Any,
    indent: int | str | None,
    ensure_ascii: bool,
    sort_keys: bool,
    item_separator: str,
    key_separator: str,
) -> str:
    check_length(indent * 1000 if isinstance(indent, int) else 0)
    encoder = json.JSONEncoder(
        indent=indent,
        ensure_ascii=ensure_ascii,
        sort_keys=sort_keys,
        separators=(item_separator, key_separator),
    )
    parts, n_chars = [], 0
    for part in encoder.iterencode(value):
        n_chars += len(part)
        if n_chars > MAX_TEXT:
            check_length(n_chars)
        parts.append(part)
    return "".join(parts)


VALUE_EVALUATORS: dict[str, Callable[..., Any]] = {
    "as": _as,
    "concat": _concat,
    "eq": lambda a, b: bool(a == b),
    "get": lambda value, key, default: value.get(key, default),
    "has": lambda value, item: item in value,
    "is_a": lambda value, *names: isinstance(value, tuple(TYPES[name] for name in names)),
    "item": _item,
    "json_dumps": _dumps,
    "json_loads": _loads,
    "keys": lambda value: list(value.keys()),
    "len": len,
    "ne": lambda a, b: bool(a != b),
    "not": lambda value: not value,
    "slice": lambda value, start, stop, step: value[start:stop:step],
    "truth": bool,
    "unpack": _unpack,
    "values": lambda value: list(value.values()),
}
