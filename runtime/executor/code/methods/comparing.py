"""Comparisons and membership tests, charged for all that C walks through."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.fuel import (
    CONTAINERS,
    MAPPINGS,
    SMALL,
    NotAllowed,
    charge,
    check_key,
    check_keys,
    current,
    measure,
)
from sgc.runtime.executor.code.iterators import metered
from sgc.runtime.executor.interface.records import record_of

_SETS = frozenset({set, frozenset})


def _compared(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(a: Any, b: Any) -> Any:
        kind = type(a)
        if kind in SMALL:
            return operation(a, b)
        if kind is str:
            if len(a) > 4096:
                charge(len(a) >> 11)
        elif type(b) not in SMALL:
            measure(a)
            if kind is not type(b):
                measure(b)
            if kind in _SETS or kind in MAPPINGS:
                check_keys(a, 0)
        return operation(a, b)

    return function


def contains(a: Any, b: Any) -> bool:
    """`a in b`."""
    kind = type(b)
    if kind is str:
        if type(a) is str:
            charge(find_cost(len(b), len(a)))
    elif kind in MAPPINGS or kind in _SETS:
        check_key(a, len(b))
    elif kind in CONTAINERS or (kind is range and type(a) not in (int, bool)):
        charge_search(b, a)
    elif hasattr(kind, "__next__"):
        measure(a)
        return a in metered(b)
    elif record_of(kind) is not None:
        measure(a)
        return _own_contains(a, b)
    elif kind not in SMALL:
        measure(a)
        charge(len(b) >> 2 if hasattr(kind, "__len__") else 1)
    return a in b


def _own_contains(a: Any, b: Any) -> bool:
    """`a in b` for an instance of the code's own class, which may be without end."""
    kind: Any = type(b)
    if hasattr(kind, "__contains__") or not hasattr(kind, "__iter__"):
        return a in b
    return a in metered(iter(b))


_UNTOLD = frozenset({str, int, float, bytes, tuple, frozenset})


def _is_same_live(a: Any, b: Any) -> bool:
    """`a is b` of live objects. Refuses two equal texts, numbers and the like: nothing says whether
    they are one object in Python."""
    if a is not b and type(a) in _UNTOLD and type(a) is type(b) and a == b:
        raise NotAllowed(
            f"code asks whether two equal values of the type {type(a).__name__} are one by `is`",
            hint="compare them with ==, or run it with --interpret",
        )
    return a is b


def is_same(a: Any, b: Any) -> bool:
    """`a is b`. Refuses two objects of one class, of which one may be a copy of the other."""
    if current().is_live:
        return _is_same_live(a, b)
    if a is b:
        return True
    record = record_of(type(a)) if type(a) is type(b) else None
    if record is not None and not record.is_enum:
        name = type(a).__name__
        raise NotAllowed(
            f"code asks whether two objects of {name} are one by `is`",
            hint="compare what they hold, such as a number or a name",
        )
    return False


def charge_search(items: Any, item: Any) -> None:
    """Charges for comparing an item with each of the items."""
    kind = type(item)
    n_items = min(len(items), 2**62) if type(items) is not range else range_length(items)
    charge(n_items >> 3)
    if kind is str:
        charge(n_items * (len(item) >> 9))
    elif kind not in SMALL:
        charge(n_items * ((measure(item) >> 4) + 1))


def range_length(items: range) -> int:
    return max(0, -((items.start - items.stop) // items.step))


def find_cost(n_chars: int, n_sought: int, backward: bool = False) -> int:
    """The steps of a search in a text; backward, or in a short text, C's search is quadratic."""
    cost = n_chars >> 8
    if n_sought > 5 and (backward or n_chars < 30_000):
        cost += max(0, n_chars - n_sought) * n_sought >> 9
    return cost


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": _compared(operator.eq),
    "NotEq": _compared(operator.ne),
    "Lt": _compared(operator.lt),
    "LtE": _compared(operator.le),
    "Gt": _compared(operator.gt),
    "GtE": _compared(operator.ge),
    "Is": is_same,
    "IsNot": lambda a, b: not is_same(a, b),
    "In": contains,
    "NotIn": lambda a, b: not contains(a, b),
}
