"""Objects of the user's classes as data: their class's name and their attributes."""

from __future__ import annotations

import struct
from abc import ABCMeta
from collections.abc import Mapping
from typing import Any

from sgc.core.shapes import is_model

_HEAP_TYPE = 1 << 9


def is_record(value: Any) -> bool:
    """Whether a value is an object with no state but its attributes, or a named tuple."""
    kind = type(value)
    if is_model(kind):
        return _is_plain_model(value)
    if kind.__class__ not in (type, ABCMeta) or not kind.__flags__ & _HEAP_TYPE or _is_ours(kind):
        return False
    if issubclass(kind, tuple):
        return hasattr(kind, "_fields")
    return all(_is_plain(base) for base in kind.__mro__) and hasattr(value, "__dict__")


def _is_plain_model(value: Any) -> bool:
    """Whether a model has no state but its fields."""
    held, kind = vars(value), type(value)
    is_more = value.__pydantic_extra__ or value.__pydantic_private__
    return not is_more and kind.__module__[:4] != "sgc." and [*held] == [*kind.model_fields]


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("sgc.") or hasattr(kind, "symbol")


def _is_plain(base: type) -> bool:
    """Whether a class adds nothing to its objects but attributes in their `__dict__`."""
    is_pythons = base is object or bool(base.__flags__ & _HEAP_TYPE)
    is_small = base.__basicsize__ <= object.__basicsize__ + 2 * struct.calcsize("P")
    return is_pythons and is_small and not vars(base).get("__slots__")


def parts_of(record: Any) -> Mapping[str, Any]:
    """The attributes of a record, by name."""
    if isinstance(record, tuple):
        return dict(zip(record._fields, record, strict=True))  # type: ignore[attr-defined]
    found: dict[str, Any] = object.__getattribute__(record, "__dict__")
    return found


def restored(kind: type, parts: Mapping[str, Any]) -> Any:
    """An object with exactly these attributes, made without a call of the class's own code."""
    if issubclass(kind, tuple):
        return tuple.__new__(kind, parts.values())
    made = object.__new__(kind)
    if is_model(kind):
        object.__setattr__(made, "__pydantic_fields_set__", set(parts))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
    made.__dict__.update(parts)
    return made


def form_of(record: Any) -> str:
    """The form of a record, as in its type."""
    made = getattr(type(record), "__dataclass_params__", None)
    if isinstance(record, tuple):
        return "tuple"
    return "frozen" if made is not None and made.frozen else ""
