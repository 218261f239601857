"""What a loop's iterator holds: lists and the like that it goes over, which may be changed.

The iterator lies where nobody can look, and nothing else may hold what it goes over: two runs that
have changed that in different ways do not go on alike.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, MappingView
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

_CONTAINERS = (list, dict, set, deque, Counter, OrderedDict, defaultdict, tuple, frozenset)
_FIXED = (str, int, float, bool, type(None), bytes)
MAX_DEPTH = 10  # iterators of iterators


def is_walked(value: Any) -> bool:
    """Whether a loop over a value holds others, which are to be found in it."""
    return type(value) in _CONTAINERS or _is_pythons_own(value)


def _is_pythons_own(value: Any) -> bool:
    """Whether a value is an iterator or a view that is written in C: it runs none of the user's
    code, but for what `map` and the like call.
    """
    kind = type(value)
    is_own = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    is_iterator = hasattr(kind, "__next__") and kind is not GeneratorType
    return is_own and (is_iterator or isinstance(value, MappingView))


@dataclass(frozen=True, slots=True)
class Walked:
    """What a loop goes over, as it was when it began. items: None where they may be changed."""

    container: Any
    items: tuple[Any, ...] | None

    @property
    def changed(self) -> Any:
        """What a snapshot is to hold of it; None where it is as it was."""
        items = self.items
        if items is not None and len(items) == len(self.container):
            now = _items(self.container)
            if all(one is other for one, other in zip(items, now, strict=True)):
                return None
        return self.container


def walked(value: Any) -> tuple[Walked, ...]:
    """What a loop over a value holds that may be changed while it goes round."""
    found = []
    for container in _containers(value, MAX_DEPTH):
        items = tuple(_items(container))
        are_fixed = all(isinstance(item, _FIXED) for item in items)
        if not (are_fixed and isinstance(container, (tuple, frozenset))):
            found.append(Walked(container, items if are_fixed else None))
    return tuple(found)


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
