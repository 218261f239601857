"""Methods of containers, charged for all that they walk through and make."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.fuel import (
    CONTAINERS,
    SMALL,
    charge,
    check_key,
    checked,
    measure,
)
from sgc.runtime.executor.code.iterators import (
    entries,
    is_iterable,
    keys_for,
    more_for,
)
from sgc.runtime.executor.code.methods.attributes import (
    DATA,
    METHODS,
    OF_TYPES,
    bounded_method,
    guarded,
)
from sgc.runtime.executor.code.methods.comparing import charge_search
from sgc.runtime.executor.interface.value_limits import MAX_ITEMS, check_items

Method = Callable[..., Any]


def charge_sort(items: Any) -> None:
    """Charges for a sort: n log n comparisons."""
    n_items = len(items)
    measured = measure(items) >> 6 if type(items) in CONTAINERS else 0
    charge((n_items + measured) * max(n_items.bit_length(), 1) >> 2)


def sort_key(key: Any, n_items: int) -> Callable[[Any], Any]:
    """The key of a sort; its results are compared, not the items, which may be in a cycle."""
    called, n_bits = guarded(key), max(n_items.bit_length(), 1)
    charge(n_items * n_bits >> 2)

    def function(item: Any) -> Any:
        found = called(item)
        if type(found) not in SMALL:
            charge(measure(found) * n_bits >> 8)
        return found

    return function


def _list_append(*args: Any) -> None:
    list.append(*args)
    if len(args[0]) > MAX_ITEMS:
        check_items(len(args[0]))


def _extends(name: str, kind: Any) -> Method:
    real = getattr(kind, name)

    def extend(*args: Any) -> None:
        if len(args) != 2 or not isinstance(args[0], kind) or not is_iterable(args[1]):
            real(*args)
            return
        real(args[0], more_for(args[0], args[1]))

    return extend


def _grows(items: Any, *args: Any) -> None:
    check_items(len(items) + 1)
    charge(len(items) >> 8)


def _moves(items: Any, *args: Any) -> None:
    charge(len(items) >> 8)


def _walks(items: Any, *args: Any) -> None:
    charge(1 + (len(items) >> 5))


def _seeks(items: Any, *args: Any) -> None:
    for item in args[:1]:
        charge_search(items, item)


def _copies(items: Any, *args: Any) -> None:
    charge(1 + (len(items) >> 2))


def _sort(*args: Any, key: Any = None, reverse: Any = False) -> None:
    if len(args) != 1 or not isinstance(args[0], list):
        list.sort(*args, key=key, reverse=reverse)
        return
    if key is None:
        charge_sort(args[0])
        args[0].sort(reverse=reverse)
    else:
        args[0].sort(key=sort_key(key, len(args[0])), reverse=reverse)


def _table(kind: type, **rules: tuple[str, Method | None]) -> dict[str, Method]:
    """Methods of a type. rules: pairs of their names and the function that charges before."""
    return {
        name: getattr(kind, name) if before is None else bounded_method(kind, name, before)
        for names, before in rules.values()
        for name in names.split()
    }


def _keyed(items: Any, *args: Any) -> None:
    for key in args[:1]:
        if type(key) is not str:
            check_key(key, len(items))


def _sets_key(items: Any, *args: Any) -> None:
    check_items(len(items) + 1)
    _keyed(items, *args)


METHODS[list] = {
    **_table(list, moves=("insert", _grows), walk=("clear reverse", _walks), take=("pop", _moves),
             seek=("count index remove", _seeks), copy=("copy", _copies)),
    "append": _list_append,
    "extend": _extends("extend", list),
    "sort": _sort,
}  # fmt: skip
METHODS[tuple] = _table(tuple, seek=("count index", _seeks))
METHODS[range] = _table(range, seek=("count index", _seeks))
DATA[range] = frozenset({"start", "stop", "step"})
DATA[slice] = frozenset({"start", "stop", "step"})
METHODS[deque] = {
    **_table(deque, walk=("clear reverse", _walks), take=("pop popleft", None),
             move=("rotate insert", _moves), seek=("count index remove", _seeks),
             copy=("copy", _copies)),
    **{name: bounded_method(deque, name, _grows) for name in ("append", "appendleft")},
    **{name: _extends(name, deque) for name in ("extend", "extendleft")},
}  # fmt: skip
DATA[deque] = frozenset({"maxlen"})


def _updates(kind: Any) -> Method:
    def update(*args: Any, **kwargs: Any) -> None:
        if len(args) == 2 and isinstance(args[0], kind):
            more = keys_for if kind is Counter else entries
            args = (args[0], more(args[1], args[0]) if is_iterable(args[1]) else args[1])
        kind.update(*args, **kwargs)  # type: ignore[attr-defined]
        if args:
            check_items(len(args[0]))

    return update


_DICT_RULES: dict[str, tuple[str, Method | None]] = {
    "get": ("get pop", _keyed),
    "put": ("setdefault", _sets_key),
    "view": ("items keys values", None),
    "take": ("popitem", None),
    "clear": ("clear", _walks),
    "copy": ("copy", _copies),
}
_kind: Any
for _kind in (dict, OrderedDict, defaultdict, Counter):
    METHODS[_kind] = {**_table(_kind, **_DICT_RULES), "update": _updates(_kind)}
METHODS[OrderedDict]["move_to_end"] = bounded_method(OrderedDict, "move_to_end", _keyed)


def _fromkeys(kind: Any) -> Method:
    def fromkeys(*args: Any) -> Any:
        if args and is_iterable(args[0]):
            made = kind.fromkeys((), *args[1:])
            for key in keys_for(args[0], made):
                made[key] = args[1] if len(args) == 2 else None
            return checked(made)
        return kind.fromkeys(*args)

    return fromkeys


for _kind in (dict, OrderedDict):
    OF_TYPES[_kind] = {"fromkeys": _fromkeys(_kind)}


def _subtract(*args: Any, **kwargs: Any) -> None:
    if len(args) == 2 and is_iterable(args[1]) and isinstance(args[0], Counter):
        args = (args[0], keys_for(args[1], args[0]))
    Counter.subtract(*args, **kwargs)


def _elements(counter: Any) -> Any:
    total = sum(max(each, 0) for each in counter.values() if isinstance(each, int))
    check_items(total)
    charge(total >> 2)
    return Counter.elements(counter)


METHODS[Counter] |= {
    "subtract": _subtract,
    "elements": _elements,
    "most_common": bounded_method(Counter, "most_common", lambda items, *args: charge_sort(items)),
    "total": bounded_method(Counter, "total", _copies),
}


def _of_sets(kind: Any, name: str) -> Method:
    real = getattr(kind, name)

    def operation(*args: Any) -> Any:
        if not args or not isinstance(args[0], kind):
            return real(*args)
        charge(len(args[0]) >> 1)
        rest = [keys_for(each, args[0]) if is_iterable(each) else each for each in args[1:]]
        result = real(args[0], *rest)
        check_items(len(args[0]))
        return checked(result)

    return operation


_OPERATIONS = "difference intersection isdisjoint issubset issuperset symmetric_difference union"
_CHANGES = "difference_update intersection_update symmetric_difference_update update"
for _kind in (set, frozenset):
    METHODS[_kind] = {
        **{name: _of_sets(_kind, name) for name in _OPERATIONS.split()},
        "copy": bounded_method(_kind, "copy", _copies),
    }
METHODS[set] |= {
    **{name: _of_sets(set, name) for name in _CHANGES.split()},
    **_table(set, add=("add", _sets_key), take=("discard remove", _keyed), clear=("clear", _walks),
             pop=("pop", _moves)),
}  # fmt: skip
METHODS[type({}.keys())] = {}
METHODS[type({}.items())] = {}
METHODS[int] = _table(int, plain=("as_integer_ratio bit_count bit_length conjugate", None))
METHODS[bool] = METHODS[int]
METHODS[float] = _table(float, plain=("as_integer_ratio conjugate hex is_integer", None))
OF_TYPES[float] = {"fromhex": float.fromhex}
DATA[int] = DATA[bool] = DATA[float] = frozenset({"imag", "numerator", "denominator", "real"})
DATA[float] = frozenset({"imag", "real"})
_STEPS = {name: getattr(type(_ for _ in ()), name) for name in ("close", "send")}
METHODS[type(_ for _ in ())] = _STEPS
for _kind in (deque, defaultdict):
    METHODS[_kind]["copy"] = bounded_method(_kind, "copy", _copies, checked)
