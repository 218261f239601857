"""Copies of sets that iterate their items in the same order, also after the same changes.

A set's order is that of its table. It depends on the order in which the items were added, on the
table's size, and on the places of removed items, which stay taken until the table grows. No method
of a set copies these, so the table is read from CPython's memory, and an equal table is filled.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from operator import is_
from typing import Any

_MIN_SIZE = 8
_N_PROBES = 9  # places after the first one that are tried before a jump
_SHIFT = 5
_BITS = 8 * ctypes.sizeof(ctypes.c_size_t)


class _Fields(ctypes.Structure):
    """A set's own fields, which follow those of every object; `finger`: where `pop` begins."""

    _fields_ = (
        ("fill", ctypes.c_ssize_t),
        ("used", ctypes.c_ssize_t),
        ("mask", ctypes.c_ssize_t),
        ("table", ctypes.c_void_p),
        ("hash", ctypes.c_ssize_t),
        ("finger", ctypes.c_ssize_t),
    )


def _fields(value: set[Any] | frozenset[Any]) -> _Fields:
    return _Fields.from_address(id(value) + object.__basicsize__)


def _entries(of: _Fields) -> bytes:
    """For each place of the table, the address of its item, and the item's hash."""
    return ctypes.string_at(of.table, (of.mask + 1) * 2 * ctypes.sizeof(ctypes.c_ssize_t))


class _Stand:
    """A stand-in for an item of a table: for a removed item, or to make a table larger than its
    items need; then the stand-in equals the item with its hash when both meet in a set."""

    __slots__ = ("_hash", "is_equal")

    def __init__(self, hash_: int) -> None:
        self._hash, self.is_equal = hash_, False

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return True if self.is_equal or self is other else NotImplemented


def exact_copy(value: set[Any], items: Sequence[Any] | None = None) -> set[Any] | None:
    """A copy of a set with the same table; None if none can be made, or tables cannot be read.

    items: the items of the copy, in the order of the set's items and with the same hashes.
    """
    if not IS_READ:
        return None
    own = [*value]
    if items is None or all(map(is_, items, own)):
        for made in value.copy(), set(own):
            if is_same(value, made):
                return made
    table = _Table.of(value, own if items is None else items)
    if table is None:
        return None
    for make in table.filled, partial(table.added, False), partial(table.added, True):
        copy = make()
        if copy is not None and table == _Table.of(copy, [*copy]):
            return copy
    return None


def is_same(one: set[Any] | frozenset[Any], other: set[Any] | frozenset[Any]) -> bool:
    """Whether two sets have the same table of the very same items."""
    ours, theirs = _fields(one), _fields(other)
    is_alike = (ours.fill, ours.mask, ours.finger) == (theirs.fill, theirs.mask, theirs.finger)
    return is_alike and _entries(ours) == _entries(theirs)


def as_added(value: set[Any] | frozenset[Any]) -> list[Any]:
    """The items of a set, in an order in which they may have been added to a table of this size."""
    table = _Table.of(value, [*value]) if IS_READ else None
    if table is None:
        return [*value]
    items = (table.items[place] for place in table.order())
    return [item for item in items if item is not _REMOVED]


@dataclass(frozen=True, slots=True)
class _Table:
    """The table of a set. finger: where `pop` begins; items: the item at each taken place,
    `_REMOVED` for a removed item. Places that were never taken since the table grew are missing."""

    mask: int
    finger: int
    items: dict[int, Any]

    @classmethod
    def of(cls, value: set[Any] | frozenset[Any], items: Sequence[Any]) -> _Table | None:
        """The table of a set, with its items replaced by `items`; None if a hash differs."""
        fields, own = _fields(value), set(map(id, value))
        entries = struct.unpack(f"{2 * (fields.mask + 1)}n", _entries(fields))
        left = iter(items)
        found: dict[int, Any] = {}
        for place, (address, hash_) in enumerate(zip(entries[::2], entries[1::2], strict=True)):
            if address in own:
                found[place] = next(left)
                if hash(found[place]) != hash_:
                    return None
            elif address:
                found[place] = _REMOVED
        return cls(fields.mask, fields.finger, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Table) or self.items.keys() != other.items.keys():
            return False
        is_alike = (self.mask, self.finger) == (other.mask, other.finger)
        return is_alike and all(item is other.items[place] for place, item in self.items.items())

    def filled(self) -> set[Any] | None:
        """A set with such a table, updated from a dict: an empty set at once makes its table as
        large as the dict's keys need, and then takes the keys in order."""
        keys = [self._key(place) for place in self.order()]
        n_least = 0 if self.mask < _MIN_SIZE else max(_N_FITTING, (self.mask + 1) // 4)
        first, later = keys[: self.mask // 2], keys[self.mask // 2 :]
        asking = [hash(key) for key in first if type(key) in _ASKING]
        n_equal = min(max(n_least - len(first), 0), _MAX_EQUAL * len(asking))
        equal = [_Stand(hash_) for hash_ in islice(cycle(asking), n_equal)]
        if len(keys) < len(self.items) or len(first) + len(equal) < n_least:
            return None
        given = dict.fromkeys([*first, *equal])
        for each in equal:
            each.is_equal = True  # only now: the dict has the stand-in, the set will not take it
        made: set[Any] = set()
        if self.finger:
            _pop_to(made, self.finger)
        made.update(given)
        made.update(later)
        for key in keys:
            if type(key) is _Stand:
                made.discard(key)
        return made

    def added(self, is_sorted: bool) -> set[Any] | None:
        """A set to which the keys are added one by one; it has such a table if the table grew so.

        is_sorted: adds the items at the first place of their way first. However the growing table
        moves such items, they end there.
        """
        places = self.order()
        if self.finger or len(places) < len(self.items):
            return None
        keyed = [(place, self._key(place)) for place in places]
        if is_sorted:
            keyed.sort(key=lambda each: hash(each[1]) & self.mask != each[0])
        keys = [key for _, key in keyed]
        made = set(keys)
        for key in keys:
            if type(key) is _Stand:
                made.discard(key)
        return made

    def _key(self, place: int) -> Any:
        item = self.items[place]
        return _Stand(place + (self.mask + 1) * _FAR) if item is _REMOVED else item

    def order(self) -> list[int]:
        """The places in an order in which each item gets its own place: the places before it on its
        way must already be taken. Incomplete if the hashes were chosen to make long ways."""
        taken: set[int] = set()
        waiting: dict[int, list[int]] = {}
        order, left = [], [*self.items]
        n_tries = _MAX_TRIES * (self.mask + 1)
        while left and n_tries > 0:
            place = left.pop()
            for free in self._way(place):
                n_tries -= 1
                if free == place or free not in taken or n_tries <= 0:
                    break
            if free != place:
                waiting.setdefault(free, []).append(place)
                continue
            taken.add(place)
            order.append(place)
            left += waiting.pop(place, ())
        return order

    def _way(self, place: int) -> Iterator[int]:
        """The places that are tried for the item at a place."""
        hash_ = hash(self._key(place))
        at, perturb = hash_ & self.mask, hash_ % 2**_BITS
        while True:
            n_probes = _N_PROBES if at + _N_PROBES <= self.mask else 0
            yield from range(at, at + n_probes + 1)
            perturb >>= _SHIFT
            at = (at * 5 + 1 + perturb) & self.mask


def _pop_to(made: set[Any], finger: int) -> None:
    """Makes the next `pop` of an empty set begin at the place `finger`."""
    size = _MIN_SIZE
    while size < finger:
        size *= 2
    others = [_Stand(place) for place in range(size // 2 - 1) if place != finger - 1]
    made.update(dict.fromkeys([_Stand(finger - 1), *others]))
    for each in others:
        made.discard(each)
    made.pop()
    last = _Stand(0)
    made.add(last)
    made.difference_update((last,))  # shrinks a table with many removed items


_REMOVED = object()
_FAR = 2**31 - 1  # so that no item has the hash of a removed one
_MAX_TRIES = 100  # for each place
_MAX_EQUAL = 64  # stands that equal one key: a dict compares each of them with all others
_N_FITTING = 5  # the least number of dict keys that do not fit into the smallest table
# Types of items whose comparison with another type's object is left to that object.
_ASKING = (str, int, float, bool, bytes, type(None), tuple, frozenset, _Stand)


def _is_read() -> bool:
    """Whether this Python stores sets in the form that is read here."""
    if platform.python_implementation() != "CPython":
        return False
    made = {*range(7, 3, -1)}
    made.discard(5)
    fields = _fields(made)
    if (fields.fill, fields.used, fields.mask, fields.finger) != (4, 3, 7, 0):
        return False
    table = _Table.of(made, [*made])
    return table is not None and table.items == {4: 4, 5: _REMOVED, 6: 6, 7: 7}


IS_READ = _is_read()
