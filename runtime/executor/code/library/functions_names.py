"""Names of `functools`, `operator`, `bisect`, `graphlib`, `heapq` and `copy`."""

from __future__ import annotations

import bisect
import copy
import functools
import graphlib
import heapq
import operator
from collections.abc import Callable, Iterable
from typing import Any

from sgc.runtime.executor.code.classes.access import check_name
from sgc.runtime.executor.code.classes.copying import shallow_copy
from sgc.runtime.executor.code.fuel import CONTAINERS, NotAllowed, charge, measure
from sgc.runtime.executor.code.iterators import drained, is_iterable, is_lazy, metered, taken
from sgc.runtime.executor.code.library.dataclasses_names import only_above
from sgc.runtime.executor.code.methods.attributes import (
    GUARDS,
    METHODS,
    bounded_method,
    guarded,
    method,
)
from sgc.runtime.executor.code.methods.comparing import COMPARED, contains
from sgc.runtime.executor.code.methods.container_methods import charge_sort
from sgc.runtime.executor.code.methods.instances import get_attribute
from sgc.runtime.executor.code.methods.operators import BINARY, UNARY, subscript
from sgc.runtime.executor.code.values import copied, deep_copied
from sgc.runtime.executor.interface.records import record_of
from sgc.runtime.executor.interface.value_limits import check_items


def _reduce(*args: Any) -> Any:
    if len(args) < 2 or not is_iterable(args[1]):
        return functools.reduce(*args)
    return functools.reduce(guarded(args[0]), metered(iter(args[1])), *args[2:])


def _partial(*args: Any, **kwargs: Any) -> Any:
    charge(4 + len(args))
    given: Any = (*map(guarded, args[:1]), *args[1:])
    return functools.partial(*given, **kwargs)


class _Key:
    """An item that is compared by a function."""

    __slots__ = ("_compare", "_item")

    def __init__(self, compare: Callable[[Any, Any], Any], item: Any) -> None:
        self._compare, self._item = compare, item

    def __lt__(self, other: _Key) -> bool:
        return bool(self._compare(self._item, other._item) < 0)

    def __gt__(self, other: _Key) -> bool:
        return bool(self._compare(self._item, other._item) > 0)


def _cmp_to_key(mycmp: Any) -> Any:
    compare = guarded(mycmp)

    def key(item: Any) -> _Key:
        charge(2)
        return _Key(compare, item)

    return key


FUNCTOOLS: dict[str, Any] = {
    "cmp_to_key": _cmp_to_key,
    "partial": _partial,
    "reduce": _reduce,
    "total_ordering": only_above("total_ordering"),
}


def _itemgetter(*keys: Any) -> Any:
    if not keys:
        raise TypeError("itemgetter expected 1 argument, got 0")
    if len(keys) == 1:
        (key,) = keys
        return lambda items: subscript(items, key)
    return lambda items: tuple([subscript(items, key) for key in keys])


def _attrgetter(*names: Any) -> Any:
    if not names:
        raise TypeError("attrgetter expected 1 argument, got 0")
    if not all(isinstance(name, str) for name in names):
        raise TypeError("attribute name must be a string")

    def getter(name: str) -> Callable[[Any], Any]:
        return lambda of: functools.reduce(get_attribute, name.split("."), of)

    if len(names) == 1:
        return getter(names[0])
    getters = [*map(getter, names)]
    return lambda of: tuple([each(of) for each in getters])


def _methodcaller(name: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(name, str):
        raise TypeError("method name must be a string")
    check_name(name)
    return lambda of: method(of, name)(of, *args, **kwargs)


def _operation(name: str, row: Callable[..., Any], n_args: int) -> Callable[..., Any]:
    real = getattr(operator, name)

    def function(*args: Any) -> Any:
        charge(1)
        return row(*args) if len(args) == n_args else real(*args)

    return function


def _concat(a: Any, b: Any) -> Any:
    if not hasattr(type(a), "__getitem__"):
        raise TypeError(f"{type(a).__name__!r} object can't be concatenated")
    return BINARY["Add"](a, b)


_BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mult", "truediv": "Div", "floordiv": "FloorDiv",
    "mod": "Mod", "pow": "Pow", "and_": "BitAnd", "or_": "BitOr", "xor": "BitXor",
}  # fmt: skip
_COMPARED = {"lt": "Lt", "le": "LtE", "eq": "Eq", "ne": "NotEq", "gt": "Gt", "ge": "GtE"}
OPERATOR: dict[str, Any] = {
    **{name: _operation(name, BINARY[row], 2) for name, row in _BINARY.items()},
    **{name: _operation(name, COMPARED[row], 2) for name, row in _COMPARED.items()},
    **{name: getattr(operator, name) for name in ("abs", "not_", "truth")},
    "is_": COMPARED["Is"],
    "is_not": COMPARED["IsNot"],
    "concat": _operation("concat", _concat, 2),
    "contains": _operation("contains", lambda items, item: contains(item, items), 2),
    "getitem": _operation("getitem", subscript, 2),
    "attrgetter": _attrgetter,
    "itemgetter": _itemgetter,
    "methodcaller": _methodcaller,
    "neg": _operation("neg", UNARY["USub"], 1),
    "pos": _operation("pos", UNARY["UAdd"], 1),
}


def _bisecting(name: str) -> Callable[..., Any]:
    real = getattr(bisect, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        for items in args[:1]:
            charge(32 + (len(items) >> 8 if name.startswith("insort") else 0))
            if type(items) is list:
                check_items(len(items) + 1)
        for item in args[1:2]:
            charge((measure(item) >> 4) + 1)
        if kwargs.get("key") is not None:
            kwargs["key"] = guarded(kwargs["key"])
        return real(*args, **kwargs)

    return function


BISECT: dict[str, Any] = {
    name: _bisecting(name)
    for name in ("bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right")
}


def _heaped(name: str) -> Callable[..., Any]:
    real = getattr(heapq, name)

    def function(*args: Any) -> Any:
        for items in args[:1]:
            if type(items) is list:
                check_items(len(items) + 1)
                charge(8 + (len(items) if name == "heapify" else 0))
                # Comparisons walk through the items on one path of the heap.
                for item in [*args[1:], *items[:1]]:
                    charge((measure(item) >> 3) + 1 if type(item) in CONTAINERS else 1)
        return real(*args)

    return function


def _compared(item: Any) -> Any:
    charge(8)  # for comparisons with some of the largest items
    if type(item) in CONTAINERS:
        charge(measure(item) >> 3)
    return item


def _extremes(name: str) -> Callable[..., Any]:
    real = getattr(heapq, name)

    def function(n: Any, iterable: Any, key: Any = None) -> Any:
        if not is_iterable(iterable):
            return real(n, iterable)
        if key is not None:  # its results are compared, not the items, which may be in a cycle
            called = guarded(key)
            return real(n, taken(iterable), key=lambda item: _compared(called(item)))
        if not is_lazy(iterable):
            charge_sort(drained(iterable))
            charge(len(iterable))
        return real(n, taken(iterable, _compared))

    return function


HEAPQ: dict[str, Any] = {
    **{
        name: _heaped(name)
        for name in ("heapify", "heappop", "heappush", "heappushpop", "heapreplace")
    },
    **{name: _extremes(name) for name in ("nlargest", "nsmallest")},
}


def _copy(value: Any) -> Any:
    if type(value) in CONTAINERS:
        charge(4 + len(value))
        return copy.copy(value)
    record = record_of(type(value))
    if record is None:
        return copied(value)
    _check_copied([value])
    return shallow_copy(value, record)


def _check_copied(values: Iterable[Any]) -> None:
    """Refuses copies that Python makes by calling a class: of an error, with its `args`; of a
    NamedTuple, with the items that it iterates.
    """
    for value in values:
        kind: Any = type(value)
        record = record_of(kind)
        if record is not None and (
            record.is_error or (record.is_tuple and kind.__iter__ is not tuple.__iter__)
        ):
            raise NotAllowed(f"a copy of {record.name} is not allowed in a graph's code")


def _deepcopy(value: Any) -> Any:
    try:
        charge(4 + 2 * (measure(value) >> 1))
        memo: dict[int, Any] = {}
        made = deep_copied(value, memo)
        charge(8 * len(memo))
        _check_copied(original for original, _ in memo.values())
        return made
    except RecursionError as error:
        raise NotAllowed("the value is nested too deeply to be copied") from error


def _sorter(graph: Any = None) -> Any:
    charge(16 + measure(graph))
    return graphlib.TopologicalSorter(graph)


_SORTER = graphlib.TopologicalSorter
METHODS[_SORTER] = {
    name: bounded_method(_SORTER, name, lambda of, *nodes: charge(4 + measure([*nodes])))
    for name in ("add", "done", "get_ready", "is_active")
} | {
    "prepare": bounded_method(_SORTER, "prepare", lambda of: charge(64)),
    "static_order": bounded_method(_SORTER, "static_order", lambda of: charge(64), metered),
}
GUARDS[_SORTER] = _sorter
GRAPHLIB: dict[str, Any] = {"CycleError": graphlib.CycleError, "TopologicalSorter": _SORTER}
COPY: dict[str, Any] = {"copy": _copy, "deepcopy": _deepcopy}
