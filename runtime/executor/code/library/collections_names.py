"""Names of `collections`."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

from sgc.runtime.executor.code.fuel import MAPPINGS, charge, check_keys, checked
from sgc.runtime.executor.code.iterators import drained, is_iterable, pairs_of
from sgc.runtime.executor.code.methods.attributes import GUARDS, guarded
from sgc.runtime.executor.code.values import FACTORIES
from sgc.runtime.executor.interface.value_limits import check_items


def _counter(*args: Any, **kwargs: Any) -> Any:
    charge(8)
    if len(args) == 1 and is_iterable(args[0]):
        items = drained(args[0])
        if type(items) is not str:
            check_keys(items, 0)
        args = (items,)
        charge(len(items) >> 2)
    return checked(Counter(*args, **kwargs))


def _defaultdict(*args: Any, **kwargs: Any) -> Any:
    charge(6)
    if len(args) > 1:
        args = (args[0], _pairs(args[1]), *args[2:])
    if args and (args[0] in FACTORIES.values() or not isinstance(args[0], type)):
        args = (guarded(args[0]), *args[1:])
    return checked(defaultdict(*args, **kwargs))


def _ordered(*args: Any, **kwargs: Any) -> Any:
    charge(8)
    if len(args) == 1:
        args = (_pairs(args[0]),)
    made = OrderedDict(*args, **kwargs)
    charge(2 * len(made))
    return checked(made)


def _pairs(items: Any) -> Any:
    if not is_iterable(items):
        return items
    found = drained(items)
    if type(found) in MAPPINGS:
        check_keys(found, 0)
    elif type(found) in (list, tuple):
        return pairs_of(found)
    return found


def _deque(*args: Any, **kwargs: Any) -> Any:
    charge(26)
    if args and is_iterable(args[0]):
        args = (drained(args[0]), *args[1:])
        check_items(len(args[0]))
    return checked(deque(*args, **kwargs))


COLLECTIONS: dict[str, Any] = {
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
    "deque": deque,
}
GUARDS.update({Counter: _counter, OrderedDict: _ordered, defaultdict: _defaultdict, deque: _deque})
# Factories that a run must know of; a result has Python's own.
FACTORIES.update({_deque: deque, _defaultdict: defaultdict})
