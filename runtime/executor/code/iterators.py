"""Items of iterators: each is paid for, and iterators of iterators nest only so deep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sgc.runtime.executor.code.fuel import (
    MAX_ITERATORS,
    SIZED,
    NotAllowed,
    charge,
    check_keys,
    current,
)
from sgc.runtime.executor.interface.value_limits import MAX_ITEMS, LimitExceeded, check_items


def metered(items: Iterable[Any]) -> Iterator[Any]:
    """The items, each paid for: what C takes from an endless iterator ends."""
    return map(current().pay, items)


def no_iterator(value: Any) -> Any:
    """A value that an iterator holds on to: Python frees chains of iterators by recursion."""
    if hasattr(type(value), "__next__"):
        raise NotAllowed("an iterator of iterators is not allowed here in a graph's code")
    return value


def depth_of(value: Any) -> int:
    """How many iterators an iterator takes its items through."""
    found = current().nested.get(id(value))
    return found[1] if found else int(hasattr(type(value), "__next__"))


def nested(made: Any, *sources: Any) -> Any:
    """An iterator just made of others, noted: C takes items through all of them by recursion."""
    charge(4)
    depth = 1 + max(map(depth_of, sources), default=0)
    if depth > MAX_ITERATORS:
        raise LimitExceeded(f"iterators of iterators are nested more than {MAX_ITERATORS} deep")
    if depth > 1:
        charge(8)
        current().nested[id(made)] = (made, depth)
    return made


def source(items: Any) -> Any:
    """What an iterator may take its items from, and skip as many as it likes."""
    if type(items) in SIZED:
        charge(len(items) >> 2)
        return items
    return metered(iter(items))


def drained(items: Any) -> Any:
    """A sized collection of the items, paid for; an iterator is used up, and may be endless."""
    kind = type(items)
    if kind in SIZED:
        charge(len(items) >> 3)
        return items
    if kind is range:
        # len() itself fails where a range is too long.
        n_items = max(0, -((items.start - items.stop) // items.step))
        check_items(n_items)
        charge(n_items >> 2)
        return items
    found: list[Any] = []
    take = found.append
    for item in metered(iter(items)):
        take(item)
        if len(found) > MAX_ITEMS:
            check_items(len(found))
    return found


def is_iterable(value: Any) -> bool:
    """Whether a value has items to take."""
    return hasattr(type(value), "__iter__")


def pairs_of(items: Any) -> Any:
    """What a dict is made of: pairs, an endless iterator among which would not end."""
    if not all(type(each) in (tuple, list, str) for each in items):
        items = [drained(each) if is_iterable(each) else each for each in items]
    check_keys([each[0] for each in items if type(each) in (tuple, list) and each], 0)
    return items
