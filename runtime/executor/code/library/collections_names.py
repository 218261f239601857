"""Names of `collections`."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

from sgc.runtime.executor.code.fuel import charge, checked
from sgc.runtime.executor.code.iterators import entries, is_iterable, keys_for, more_for
from sgc.runtime.executor.code.methods.attributes import GUARDS, guarded
from sgc.runtime.executor.code.values import FACTORIES


def _counter(*args: Any, **kwargs: Any) -> Any:
    charge(8)
    if len(args) == 1 and is_iterable(args[0]):
        made: Counter[Any] = Counter()
        made.update(keys_for(args[0], made), **kwargs)
        return checked(made)
    return checked(Counter(*args, **kwargs))


def _defaultdict(*args: Any, **kwargs: Any) -> Any:
    charge(6)
    if args and (args[0] in FACTORIES.values() or not isinstance(args[0], type)):
        args = (guarded(args[0]), *args[1:])
    if len(args) == 2 and is_iterable(args[1]):
        made: defaultdict[Any, Any] = defaultdict(args[0])
        made.update(entries(args[1], made), **kwargs)
        return checked(made)
    return checked(defaultdict(*args, **kwargs))


def _ordered(*args: Any, **kwargs: Any) -> Any:
    charge(8)
    made: OrderedDict[Any, Any] = OrderedDict()
    if len(args) == 1 and is_iterable(args[0]):
        made.update(entries(args[0], made), **kwargs)
    else:
        made = OrderedDict(*args, **kwargs)
    charge(2 * len(made))
    return checked(made)


def _deque(*args: Any, **kwargs: Any) -> Any:
    charge(26)
    if not args and "iterable" in kwargs:
        args = (kwargs.pop("iterable"),)
    if args and is_iterable(args[0]):
        made: deque[Any] = deque((), *args[1:], **kwargs)
        made.extend(more_for(made, args[0]))
        return checked(made)
    return checked(deque(*args, **kwargs))


COLLECTIONS: dict[str, Any] = {
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
    "deque": deque,
}
GUARDS.update({Counter: _counter, OrderedDict: _ordered, defaultdict: _defaultdict, deque: _deque})
# Inside a run, a defaultdict may have a guarded factory; in a result, Python's own replaces it.
FACTORIES.update({_deque: deque, _defaultdict: defaultdict})
