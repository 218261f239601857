"""Iteration with limits: a step is charged for each item, and nesting of iterators is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import Any
from weakref import ref

from sgc.runtime.executor.code.fuel import (
    MAPPINGS,
    MAX_ITERATORS,
    SIZED,
    NotAllowed,
    charge,
    check_key,
    check_keys,
    current,
)
from sgc.runtime.executor.interface.value_limits import MAX_ITEMS, LimitExceeded, check_items


def metered(items: Iterable[Any]) -> Iterator[Any]:
    """The items, a step charged for each, so that C cannot consume an endless iterator forever."""
    return map(current().pay, items)


def no_iterator(value: Any) -> Any:
    """Returns a value that an iterator will hold; refuses iterators, since CPython frees chains of
    them by recursion.
    """
    if hasattr(type(value), "__next__"):
        raise NotAllowed("an iterator of iterators is not allowed here in a graph's code")
    return value


def depth_of(value: Any) -> int:
    """The nesting depth of an iterator; 0 for other values."""
    found = current().nested.get(id(value))
    return found[1] if found else int(hasattr(type(value), "__next__"))


def nested(made: Any, *sources: Any) -> Any:
    """Returns a new iterator over others after noting its depth: C recurses through them all."""
    charge(4)
    depth = 1 + max(map(depth_of, sources), default=0)
    if depth > MAX_ITERATORS:
        raise LimitExceeded(f"iterators of iterators are nested more than {MAX_ITERATORS} deep")
    if depth > 1:
        charge(8)
        _note(made, depth)
    return made


def _note(made: Any, depth: int) -> None:
    """Notes the depth of an iterator and keeps the iterator, so that its id is not reused; a
    generator is not kept, so that it is closed when unused."""
    noted, key = current().nested, id(made)
    if type(made) is GeneratorType:
        noted[key] = (ref(made, lambda _: noted.pop(key, None)), depth)
    else:
        noted[key] = (made, depth)


def source(items: Any) -> Any:
    """The items for an iterator that may skip many of them, charged."""
    if type(items) in SIZED:
        charge(len(items) >> 2)
        return items
    return metered(iter(items))


def drained(items: Any) -> Any:
    """A sized collection of the items, charged; it consumes an iterator, which may be endless."""
    kind = type(items)
    if kind in SIZED:
        charge(len(items) >> 3)
        return items
    if kind is range:
        # len() fails for a range that is too long.
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


def taken(items: Any, check: Callable[[Any], Any] | None = None) -> Any:
    """The items for C to take one by one; those of an iterator are charged and checked one by one.

    Items taken before an iterator raises, or before an item is refused, have their effect.
    """
    if not is_lazy(items):
        return drained(items)
    each = metered(iter(items))
    return each if check is None else map(check, each)


def is_lazy(items: Any) -> bool:
    """Whether items are produced on demand."""
    return type(items) not in SIZED and type(items) is not range


def hashed(target: Any) -> Callable[[Any], Any]:
    """A check of each item that becomes a key of a collection."""

    def check(item: Any) -> Any:
        n_items = len(target)
        if n_items >= MAX_ITEMS:
            check_items(n_items + 1)
        check_key(item, n_items)
        return item

    return check


def added(target: Any) -> Callable[[Any], Any]:
    """A check of each item that is added to a collection."""

    def check(item: Any) -> Any:
        if len(target) >= MAX_ITEMS:
            check_items(len(target) + 1)
        return item

    return check


def is_iterable(value: Any) -> bool:
    """Whether a value can be iterated."""
    return hasattr(type(value), "__iter__")


def more_for(items: Any, more: Any) -> Any:
    """The items, checked and charged, with which a list or deque is extended."""
    if is_lazy(more):
        return taken(more, added(items))
    more = drained(more)
    check_items(len(items) + len(more))
    charge(len(more) >> 1)
    return more


def keys_for(items: Any, target: Any) -> Any:
    """The items, checked and charged, with which a set or counter is updated."""
    if is_lazy(items):
        return taken(items, hashed(target))
    items = drained(items)
    if type(items) not in (str, range):
        check_keys(items, len(target))
    charge(len(items))
    return items


def entries(items: Any, target: Any) -> Any:
    """The mapping or the pairs, checked and charged, with which a mapping is updated."""
    if type(items) in MAPPINGS:
        check_keys(items, len(target))
        charge(len(items))
        return items
    if not is_lazy(items) and all(type(each) in _PAIRS for each in items):
        charge(len(items))
        check_keys([each[0] for each in items if each], len(target))
        return items
    check = hashed(target)

    def pair(item: Any) -> Any:
        charge(1)
        if type(item) not in _PAIRS and is_iterable(item):
            item = drained(item)  # the item may be an endless iterator
        if type(item) in _PAIRS and item:
            check(item[0])
        return item

    return map(pair, taken(items))


_PAIRS = frozenset({tuple, list})
