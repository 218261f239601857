"""What `match` asks of a dict or of one of Python's own types, also of a value out of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.values.abstract import AbstractJson

# The types whose pattern has one part, the value itself.
_WHOLE = (bool, dict, float, int, list, str, tuple)
_MISSING = object()


def keyed_parts(value: Any, *keys: Any) -> tuple[list[Any], ...]:
    """The values of these keys, in a tuple; an empty one for what is no dict, or lacks a key."""
    if isinstance(value, AbstractJson):
        if not value.is_a(dict):
            return ()
        found = []
        for key in keys:
            if key not in value:
                return ()
            found.append(value[key])
        return (found,)
    if not isinstance(value, Mapping):
        return ()
    found = [value.get(key, _MISSING) for key in keys]
    return () if any(each is _MISSING for each in found) else (found,)


def is_whole_of(value: Any, kind: Any) -> Any:
    """Whether a value is of one of Python's types whose pattern's one part is the value itself."""
    if not any(kind in (each, KNOWING.get(each)) for each in _WHOLE):
        stop(
            f"`case {getattr(kind, '__name__', kind)}(…)` looks into a value by its class",
            hint="write `if isinstance(v, …): …`; or " + INTERPRET,
        )
    return KNOWING[isinstance](value, kind)
