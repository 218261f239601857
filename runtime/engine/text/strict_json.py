"""Reads JSON that others wrote. What readers take differently is an error: a name that an object
has twice, and NaN or Infinity, which JSON does not have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn


class RepeatedNameError(ValueError):
    """An object has a name twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"an object has the name {name[:80]!r} twice")
        self.name = name[:80]


def load(text: str) -> Any:
    """The value that a text is; raises ValueError or RecursionError."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)


def load_at(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at a place of a text, and where it ends; raises as `load`."""
    return _DECODER.raw_decode(text, start)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise RepeatedNameError(name)
            names.add(name)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
