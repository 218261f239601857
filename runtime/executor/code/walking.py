"""Walks through all that a value holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sgc.runtime.executor.code.fuel import CONTAINERS, MAPPINGS, MAX_VALUE_DEPTH
from sgc.runtime.executor.interface.records import held_parts, record_of
from sgc.runtime.executor.interface.value_limits import LimitExceeded


def walked(value: Any) -> Iterator[tuple[Any, Any, bool]]:
    """The value and each value inside it, with its parts and whether its class has parts. Raises
    LimitExceeded if values are nested too deep, as in a cycle."""
    left = [(value, 0)]
    while left:
        value, depth = left.pop()
        kind = type(value)
        record = record_of(kind)
        parts: Any = ()
        if record is not None:
            parts = held_parts(record, value)
        elif kind in MAPPINGS:
            parts = [*value.keys(), *value.values()]
        elif kind in CONTAINERS:
            parts = value
        yield value, parts, record is not None or kind in MAPPINGS or kind in CONTAINERS
        if depth > MAX_VALUE_DEPTH:
            raise LimitExceeded(f"values are nested more than {MAX_VALUE_DEPTH} deep")
        left += [(part, depth + 1) for part in parts]
