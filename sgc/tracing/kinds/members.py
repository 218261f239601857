"""Members of the program's enumerations."""

from __future__ import annotations

from enum import Enum, EnumType, Flag
from typing import Any


def is_enumeration(kind: Any) -> bool:
    """Whether a value is the class of an enumeration that is not a Flag."""
    return isinstance(kind, EnumType) and not issubclass(kind, Flag)


def holds_member(key: Any) -> bool:
    """Whether a key of a dict, or a set, is or holds a member."""
    if type(key) in (tuple, set, frozenset):
        return any(map(holds_member, key))
    return is_member(key)


def is_member(value: Any) -> bool:
    """Whether a value is a member of an enumeration, but not of a Flag."""
    kind = type(value)  # `isinstance` would ask an abstract value for its class
    return issubclass(kind, Enum) and not issubclass(kind, Flag)
