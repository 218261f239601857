"""What snapshots read of objects: attributes, if their class is written in Python, and keys."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from enum import Enum
from types import FunctionType
from typing import Any

from sgc.core.markers import has_marker
from sgc.tracing.code.frames import Opaque
from sgc.tracing.values.abstract import is_abstract

CONSTANTS = frozenset({
    type(None), bool, int, float, bytes, complex, range, re.Pattern, type(...),
})  # fmt: skip
_HEAP_TYPE = 1 << 9
_POINTER = struct.calcsize("P")
_HIDDEN = ("__dict__", "__weakref__")
_DATA = (str, int, float, list, tuple, dict, set)


def names_of(kind: type) -> Iterator[str]:
    """The names of the slots of a class's objects."""
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in _HIDDEN:
                yield name


def is_pythons(kind: type) -> bool:
    """Whether a class is written in Python, so that its objects have no state but attributes."""
    for base in kind.__mro__:
        if base is not object and not base.__flags__ & _HEAP_TYPE:
            return False
    n_slots = sum(1 for _ in names_of(kind))
    n_slots += (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__basicsize__ <= object.__basicsize__ + n_slots * _POINTER


def is_programs(kind: type) -> bool:
    """Whether widening may replace attributes of a class's objects: true of the program's classes
    and of the tracer's loops, but not of other classes of sgc.
    """
    return not kind.__module__.startswith("sgc.") or kind.__module__.startswith("sgc.tracing.")


def contents_of(kind: type) -> Iterator[tuple[str, Any]]:
    """The attributes of a class made in a function, which a program may have changed."""
    if "<locals>" not in kind.__qualname__ or issubclass(kind, Enum):
        return
    for name, item in vars(kind).items():
        is_special = name.startswith("__") and name.endswith("__")
        if _is_abstract(item) or (not is_special and isinstance(item, (*_DATA, FunctionType))):
            yield name, item


def _is_abstract(item: Any) -> bool:
    return has_marker(item) if isinstance(item, str) else hasattr(type(item), "symbol")


def is_decided(key: Any) -> bool:
    """Whether a key is abstract, or holds an abstract value."""
    if isinstance(key, (tuple, frozenset)):
        return any(map(is_decided, key))
    return is_abstract(key)


def is_constant(key: Any) -> bool:
    """Whether looking up a key calls no method of the program's."""
    if type(key) is tuple:
        return all(map(is_constant, key))
    return type(key) in CONSTANTS or type(key) is str or isinstance(key, Enum)


def order(item: Any) -> str:
    """The order of an item of a set; calls no method of the program's."""
    if is_decided(item) or not is_constant(item):
        raise Opaque
    return f"{type(item).__name__} {item!r}"
