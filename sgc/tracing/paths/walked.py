"""Finds the containers that a loop's iterator goes over, and that the program may change.

The iterator cannot be inspected, and may hold the only reference to a container. Two runs that have
changed the container differently must not merge.
"""

from __future__ import annotations

import gc
import itertools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, MappingView
from dataclasses import dataclass
from operator import is_
from types import GeneratorType
from typing import Any

from sgc.tracing.values.abstract_loops import NumberedItems

_CONTAINERS = (list, dict, set, deque, Counter, OrderedDict, defaultdict, tuple, frozenset)
_FIXED = (str, int, float, bool, type(None), bytes)
MAX_DEPTH = 10  # iterators of iterators


def is_walked(value: Any) -> bool:
    """Whether a loop over a value may iterate containers that are found in the value."""
    return type(value) in (*_CONTAINERS, GeneratorType) or _is_pythons_own(value)


def _is_pythons_own(value: Any) -> bool:
    """Whether a value is an iterator or a view of Python's own, which runs none of the user's code
    except the functions that `map` and the like call.
    """
    kind = type(value)
    is_own = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    is_iterator = hasattr(kind, "__next__") and kind is not GeneratorType
    return is_own and (is_iterator or isinstance(value, MappingView))


@dataclass(frozen=True, slots=True)
class Walked:
    """A container that a loop iterates. items: the items when the loop began; None if some items
    can be changed themselves."""

    container: Any
    items: tuple[Any, ...] | None

    @property
    def changed(self) -> Any:
        """What a snapshot reads: the container if it may have changed, else None."""
        items = self.items
        if items is not None and len(items) == len(self.container):
            now = _items(self.container)
            if all(map(is_, items, now)):
                return None
        return self.container


def walked(value: Any) -> tuple[Walked, ...]:
    """The containers that a loop over a value iterates and that may change meanwhile."""
    found = []
    for container in _containers(value, MAX_DEPTH):
        items = tuple(_items(container))
        are_fixed = all(isinstance(item, _FIXED) for item in items)
        if not (are_fixed and isinstance(container, (tuple, frozenset))):
            found.append(Walked(container, items if are_fixed else None))
    return tuple(found)


# Python's own iterators whose container and position can be read.
_TELLING = frozenset({type(iter([])), type(iter(())), type(iter("")), type(reversed([])), reversed,
                      enumerate, zip})  # fmt: skip
MAX_TOLD = 64  # items: a snapshot has them all


def state_of(iterator: Any, depth: int = MAX_DEPTH) -> tuple[Any, ...] | None:
    """The state of an iterator: its type, what it iterates, and its position; None if it is not
    known. A generator is its own state."""
    if type(iterator) is GeneratorType:
        return ("generator", iterator)
    if type(iterator) not in _TELLING or not depth:
        return None
    _, given, *index = iterator.__reduce__()
    parts: list[Any] = []
    for each in given:
        is_sequence = type(each) in (list, tuple, str)
        if is_sequence and len(each) > MAX_TOLD:
            return None
        part = each if is_sequence or type(each) is int else state_of(each, depth - 1)
        if part is None:
            return None
        parts.append(part)
    return (type(iterator).__name__, *parts, *index)


# Iterators that look at the items to decide which of them to yield: after the same number of turns,
# two of them may be at different items.
_CHOOSING = frozenset({filter, itertools.filterfalse, itertools.dropwhile, itertools.compress,
                       itertools.groupby, type(next(itertools.groupby([0]))[1])})  # fmt: skip


def is_choosing(iterator: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether the number of turns does not determine the position of an iterator of Python's own,
    or of one that it reads. Iterators that run the user's code are recognized elsewhere."""
    if type(iterator) in _CHOOSING:
        return True
    if not (depth and hasattr(type(iterator), "__next__") and _is_pythons_own(iterator)):
        return False
    found = gc.get_referents(iterator)
    inner = [part for each in found if type(each) is tuple for part in each]  # of `zip`
    return any(is_choosing(each, depth - 1) for each in (*found, *inner))


def generator_of(iterator: Any) -> GeneratorType[Any, Any, Any] | None:
    """The generator whose items an iterator yields, if the iterator holds no items itself."""
    if isinstance(iterator, NumberedItems):
        return iterator.generator
    return iterator if type(iterator) is GeneratorType else None


def _items(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return [*container, *container.values()]
    return container  # type: ignore[no-any-return]


def _containers(value: Any, depth: int) -> Iterator[Any]:
    kind = type(value)
    if kind in _CONTAINERS:
        yield value
    elif depth and _is_pythons_own(value):
        for each in gc.get_referents(value):
            if type(each) is tuple:  # the iterators of `zip`
                for inner in each:
                    yield from _containers(inner, depth - 1)
            else:
                yield from _containers(each, depth - 1)
