"""The copies of the program's own lists, dicts and objects that values of the graph hold. A copy is
old once the program changes the object; then the trace stops where such a value is used.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol, symbol_in
from sgc.ir.types import JSON
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.row_types import is_unchangeable

OLD = "old"  # stands for an object that has changed since a value of the graph copied it
Shared = Mapping[str, frozenset[object]]  # for a value of the graph, the objects that it holds


@dataclass(slots=True)
class Held:
    """An object with the state that it had when a value of the graph copied it."""

    value: Any
    before: object
    is_old: bool = False


class Holdings:
    """The objects of which values of the graph hold copies, by the values' names. A value made from
    another value may hold the same objects."""

    def __init__(self) -> None:
        self._held: list[Held] = []
        self._by: dict[str, frozenset[int]] = {}  # numbers of `_held`, by a value's name

    def hold(self, symbol: Symbol, values: Iterable[Any]) -> None:
        """Notes that a value holds objects as they are now."""
        self.hold_frozen(symbol, ((value, frozen(value)) for value in values))

    def hold_frozen(self, symbol: Symbol, values: Iterable[tuple[Any, object]]) -> None:
        """Notes that a value holds objects as they were."""
        first = len(self._held)
        self._held += [Held(value, before) for value, before in values]
        self._share(symbol.name, frozenset(range(first, len(self._held))))

    def derive(self, symbols: Iterable[Symbol], names: Iterable[str]) -> None:
        """Notes that values are made from other values."""
        if not self._by:
            return
        found = self._of(names)
        for symbol in symbols if found else ():
            if not is_unchangeable(symbol.type):
                self._share(symbol.name, found)

    def _share(self, name: str, numbers: frozenset[int]) -> None:
        if numbers:
            self._by[name] = self._by.get(name, frozenset()) | numbers

    def _of(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset().union(*(self._by.get(name, ()) for name in names))

    # -- changes ----------------------------------------------------------------------------

    def note_old(self) -> None:
        """Notes which objects have changed; one that returns to its old state stays changed."""
        for each in self._held:
            each.is_old = each.is_old or frozen(each.value) != each.before

    def note_changed(self, value: Any, spares_parts: bool = False) -> None:
        """Notes that code has changed an object or its parts; the program gets the new state."""
        if self._held:
            changed = {id(value)} if spares_parts else set(map(id, changeable_in(value)))
            for each in self._held:
                each.is_old = each.is_old or any(id(part) in changed for part in _within(each))

    def refuse_old(self, names: Collection[str]) -> None:
        """Stops the trace if one of these values holds an object that has changed since."""
        for number in sorted(self._of(names)) if self._by else ():
            each = self._held[number]
            if each.is_old or frozen(each.value) != each.before:
                kind = "list" if symbol_in(each.value) else type(each.value).__name__
                stop(
                    f"a {kind} was changed after it was put into a list or "
                    "other value known only at run time, which is used",
                    hint="put it there when it is finished; or " + INTERPRET,
                )

    def replace(self, before: Any, value: Any) -> None:
        """Notes that `value` replaces the object `before` everywhere, with the same state."""
        for each in self._held:
            if each.value is before:
                each.value = value

    def renew(self) -> None:
        """Notes the present state of the objects that have not changed, after values in them were
        replaced by equal values."""
        for each in self._held:
            each.before = each.before if each.is_old else frozen(each.value)

    # -- references ---------------------------------------------------------------------------

    def count(self, value: Any) -> int:
        """How many references to an object are kept here."""
        return sum(each.value is value for each in self._held)

    def is_elsewhere(self, name: str, unread: Mapping[int, int]) -> bool:
        """Whether anything but values of the graph refers to an object that a value holds, or to a
        part of the object. unread: the numbers of references that do not count, by id."""
        parts: dict[int, Any] = {}
        n_known = Counter(id(held.value) for held in self._held) + Counter(unread)
        left = [self._held[number].value for number in self._by.get(name, ())]
        while left:
            each = left.pop()
            if id(each) not in parts and not isinstance(each, _CONSTANT):
                parts[id(each)] = each
                left += _items_of(each)
                n_known.update(map(id, _items_of(each)))
        each = None
        return any(
            sys.getrefcount(each) > n_known[number] + _N_OF_PART
            for number, each in parts.items()
            if type(each) is not tuple
        )

    def shared(self, names: Iterable[str], seen: Mapping[int, object]) -> Shared:
        """What values hold, by name: the numbers in `seen` of objects and their parts, and `OLD`
        for objects that have changed."""
        found = {}
        for name in names if self._by else ():
            held = (self._held[number] for number in self._by.get(name, ()))
            parts = frozenset(part for each in held for part in _numbers(each, seen))
            if parts:
                found[name] = parts
        return found


def _numbers(held: Held, seen: Mapping[int, object]) -> Iterator[object]:
    if held.is_old:
        yield OLD
    yield from numbers_in([held.value], seen)


def numbers_in(values: Iterable[Any], seen: Mapping[int, object]) -> Iterator[object]:
    """The numbers in `seen` of objects and their parts that can be changed."""
    for value in values:
        for part in changeable_in(value):
            if id(part) in seen:
                yield seen[id(part)]


def _within(held: Held) -> Iterator[Any]:
    return changeable_in(held.value)


def changeable_in(value: Any) -> Iterator[Any]:
    """An object and its parts, without those that cannot be changed."""
    left, seen = [value], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, _CONSTANT):
            continue
        seen.add(id(each))
        left += _items_of(each)
        if type(each) is not tuple and not (is_record(each) and form_of(each)):
            yield each


def _items_of(value: Any) -> Iterable[Any]:
    if type(value) is EndedState:
        return value.parts.values()
    if is_record(value):
        return parts_of(value).values()
    if isinstance(value, dict):
        return value.values()
    return value if type(value) in (list, tuple, deque) else ()


_CONSTANT = (str, int, float, type(None))


def frozen(value: Any, seen: dict[int, int] | None = None) -> object:
    """A key for a value's present state, to be compared later. seen: the numbers of objects that
    were already met, by id."""
    kind = type(value)
    if is_record(value):
        seen = {} if seen is None else seen
        if id(value) in seen:
            return ("again", seen[id(value)])
        seen[id(value)] = len(seen)
        return (kind, *((key, frozen(item, seen)) for key, item in parts_of(value).items()))
    if kind is EndedState:
        return (kind, frozen(value.parts, seen))
    if isinstance(value, dict):
        seen = {} if seen is None else seen
        return tuple((type(key), key, frozen(item, seen)) for key, item in value.items())
    if isinstance(value, (list, tuple, deque)) and not hasattr(kind, "symbol"):
        seen = {} if seen is None else seen
        return (kind, *(frozen(item, seen) for item in value))
    if isinstance(value, (set, frozenset)):
        return frozenset((type(item), item) for item in value)
    if isinstance(value, str):
        return str.__str__(value)
    symbol = symbol_in(value)
    if symbol is None:
        return (kind, repr(value) if kind is float else value)  # 0.0 is not -0.0
    return (kind, symbol.name)


def _counted() -> int:
    """The number of references that `is_elsewhere` itself has to each part."""
    found = Holdings()
    found.hold(Symbol("v", JSON), [[]])
    parts, n_known = {0: found._held[0].value}, Counter([0])
    return max(sys.getrefcount(each) - n_known[number] for number, each in parts.items())


_N_OF_PART = _counted()
