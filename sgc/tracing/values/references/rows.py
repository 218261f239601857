"""Rows: dicts whose keys the source writes, `{"topic": t, "score": 0}`, as references, so that all
that hold one see it change.

A row is an object of a class of its keys, with an attribute for each. So is a key that is set
later, `row["rank"] = n`; the row has a number beside it that says whether it was set, and in which
order such keys were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, NoReturn

from sgc.core.markers import has_marker
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET
from sgc.ir import types
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.references.as_data import data_of
from sgc.tracing.values.references.fields import LISTS_OF_ONE
from sgc.tracing.values.references.holders import others_of
from sgc.tracing.values.references.reference import (
    IS_OPEN,
    NO_KEYS,
    OTHERS,
    OWN_KEYS,
    begun,
    class_of,
    count_of,
    field_of,
    heap_of,
    is_of_rows,
    is_open,
    is_reference,
    keys_of,
    refuse,
    row_name,
    young_of,
)

MAX_KEYS = 32
_BY_KEYS = "use its keys, one by one; or " + INTERPRET
NOTHING_GIVEN = object()


class Row:
    """What rows are objects of: a dict, as its keys are read and set."""

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(dict, name):
            self._refuse(f"{name}() of a dict is called")
        raise AttributeError(f"'dict' object has no attribute '{name}'")

    def _refuse(self, what: str) -> NoReturn:
        """Traces anew without such rows."""
        heap_of(self).give_up(class_of(self).__name__)
        refuse(what, _BY_KEYS)

    # -- keys -------------------------------------------------------------------------------

    def _late(self) -> tuple[str, ...]:
        """The keys that rows of this class may get later."""
        found: tuple[str, ...] = heap_of(self).late_keys(class_of(self).__name__)
        return found

    def _has(self, key: Any) -> bool:
        if not is_written(key):
            if isinstance(key, str):
                self._refuse("a dict is looked up by a key known only at run time")
            hash(key)  # raises Python's own error
            return False
        if key in keys_of(class_of(self)):
            return True
        return key in self._late() and bool(heap_of(self).read(self, count_of(key)))

    def _keys(self) -> list[str]:
        """The keys that it has, in their order, by decisions."""
        late: list[str] = []
        for key in self._late():
            if self._has(key):
                n = len(late)
                while n and self._is_before(key, late[n - 1]):
                    n -= 1
                late.insert(n, key)
        return [*keys_of(class_of(self)), *late]

    def _is_before(self, key: str, other: str) -> bool:
        heap = heap_of(self)
        return bool(heap.read(self, count_of(key)) < heap.read(self, count_of(other)))

    def _sure(self, key: str) -> Any:
        """The value of a key that it has."""
        heap = heap_of(self)
        if key in keys_of(class_of(self)):
            return heap.read(self, field_of(key))
        return heap.read_late(self, key, field_of(key))

    def __getitem__(self, key: Any) -> Any:
        if not self._has(key):
            raise KeyError(key)
        return self._sure(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self._sure(key) if self._has(key) else default

    def __contains__(self, key: Any) -> bool:
        return self._has(key)

    def length(self) -> Any:
        """`len`; not `__len__`, which must return an int."""
        return len(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def iterated(self) -> Any:
        """The iterable of a loop."""
        return self.keys().iterated()

    def keys_iterated(self) -> Any:
        """The iterable of a loop over the keys."""
        return RowView(self, "keys")

    def __bool__(self) -> bool:
        return bool(keys_of(class_of(self))) or any(map(self._has, self._late()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> Any:
        return RowView(self, "keys")

    def values(self) -> Any:
        return RowView(self, "values")

    def items(self) -> Any:
        return RowView(self, "items")

    # -- changes ----------------------------------------------------------------------------

    def set_key(self, key: Any, value: Any, n_more: int) -> None:
        """Sets the value of a key. n_more: how many others than this refer to it."""
        if not may_be_key(key):
            self._refuse("a dict gets a key known only at run time, or no text")
        heap, name = heap_of(self), class_of(self).__name__
        is_late = key not in keys_of(class_of(self))
        heap.putting = name
        if is_late:
            heap.note_late(name, key, field_of(key), count_of(key), value)
        heap.write(self, field_of(key), value, n_more)
        if is_late:
            counts = [count_of(key), *(count_of(each) for each in self._late() if each != key)]
            heap.count(self, counts)
        heap.putting = ""

    def __setitem__(self, key: Any, value: Any) -> None:
        n_more = others_of(value, "setitem")
        self.set_key(key, value, n_more)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        n_more = others_of(default, "insert")
        if not self._has(key):
            self.set_key(key, default, n_more)
        return self._sure(key)

    def update(self, *others: Any, **named: Any) -> None:
        for other in (*others, named):
            is_one = type(other) is dict or is_row(other)
            if not is_one or any(type(each) in LISTS_OF_ONE for each in other.values()):
                self._refuse("update() of a dict is given more than texts, numbers and objects")
            for key in [*other]:
                self.set_key(key, other[key], 0)

    def pop(self, key: Any, default: Any = NOTHING_GIVEN) -> Any:
        if self._has(key):
            found = self._sure(key)
            self._drop(key)
            return found
        if default is NOTHING_GIVEN:
            raise KeyError(key)
        return default

    def __delitem__(self, key: Any) -> None:
        if not self._has(key):
            raise KeyError(key)
        self._drop(key)

    def _drop(self, key: str) -> None:
        if key in keys_of(class_of(self)):
            self._refuse("a key of a dict is removed")
        heap_of(self).write(self, count_of(key), 0, 0)

    # -- as a whole -------------------------------------------------------------------------

    def copy(self) -> Any:
        """A new row with the same values."""
        return heap_of(self).copied_object(self)

    def __deepcopy__(self, memo: Any) -> Any:
        if self._late():
            self._refuse("a dict that gets more keys is copied with all its parts")
        return as_row({key: deepcopy(self._sure(key)) for key in self._keys()})

    def __or__(self, other: Any) -> Any:
        if type(other) is not dict and not is_row(other):
            return NotImplemented
        return as_row({**self, **other})

    def __ror__(self, other: Any) -> Any:
        return as_row({**other, **self}) if type(other) is dict else NotImplemented

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> Any:
        if type(other) is not dict and not is_row(other):
            return NotImplemented
        session: Any = current_session()
        return session.coded(_EQUAL, (data_of(self), data_of(other)), types.BOOL)

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'dict'")

    def __repr__(self) -> str:
        session: Any = current_session()
        if session is None:  # of an error that has ended the run
            return "a dict"
        text: str = session.coded(_SHOWN, (data_of(self),), types.TEXT)
        return text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec) if not spec else format({}, spec)


MutableMapping.register(Row)
_EQUAL = "def piece(a, b):\n    return a == b"
_SHOWN = "def piece(a):\n    return repr(a)"


class RowView:
    """`keys()`, `values()` or `items()` of a row: what it has when they are read; a `for` reads
    each in its turn."""

    __slots__ = ("_part", "_row")

    def __init__(self, row: Any, part: str) -> None:
        self._row, self._part = row, part

    def _read(self, key: str) -> Any:
        if self._part == "keys":
            return key
        value = self._row._sure(key)
        return value if self._part == "values" else (key, value)

    def iterated(self) -> Any:
        """The iterable of a loop."""
        return self._row.keys_iterated() if self._part == "keys" else self

    def __contains__(self, item: Any) -> bool:
        if self._part != "keys":
            self.refuse("a value or an item is looked for in a dict")
        found: bool = self._row._has(item)
        return found

    def __iter__(self) -> Iterator[Any]:
        keys = self._row._keys()
        if is_for_of(sys._getframe(1)):
            return _Walk(self, keys)
        return iter([self._read(key) for key in keys])

    def __len__(self) -> int:
        return len(self._row)

    def refuse(self, what: str) -> NoReturn:
        row: Row = self._row
        row._refuse(what)


def _refused(self: RowView, *args: Any) -> NoReturn:
    self.refuse("keys(), values() or items() of a dict are compared or joined")


for _name in ("and", "or", "sub", "xor", "eq", "ne", "lt", "le", "gt", "ge", "rand", "ror", "rsub",
              "rxor", "reversed"):  # fmt: skip
    setattr(RowView, f"__{_name}__", _refused)
for _name in ("isdisjoint", "mapping"):
    setattr(RowView, _name, _refused)


class _Walk:
    """A `for` over a view."""

    __slots__ = ("_keys", "_n", "_state", "_view")

    def __init__(self, view: RowView, keys: list[str]) -> None:
        self._view, self._keys, self._n, self._state = view, keys, 0, self._now(view)

    @staticmethod
    def _now(view: RowView) -> list[Any]:
        """What says which keys rows of this class have."""
        heap, name = heap_of(view._row), class_of(view._row).__name__
        return [heap.columns[name, count_of(key)] for key in view._row._late()]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._now(self._view) != self._state:
            self._view.refuse(
                "a dict gets a key in a loop over it, or another dict with such keys does"
            )
        if self._n == len(self._keys):
            raise StopIteration
        self._n += 1
        return self._view._read(self._keys[self._n - 1])


# -- which they are -------------------------------------------------------------------------------


def is_row(value: Any) -> bool:
    return is_reference(value) and is_of_rows(class_of(value))


def is_written(key: Any) -> bool:
    """Whether a key is a text that is known while tracing."""
    return type(key) is str and not has_marker(key)


def may_be_key(key: Any) -> bool:
    """Whether the attribute of a key may have its name."""
    return is_written(key) and NO_KEYS.isdisjoint(key)


_classes: dict[bool, type] = {False: Row}


@lru_cache(maxsize=1024)
def row_class(keys: tuple[str, ...], is_open: bool = False) -> type:
    """The class of the rows with these keys. is_open: and others."""
    own = {OWN_KEYS: keys, IS_OPEN: is_open}
    return type(row_name(keys, is_open), (_classes[is_open],), own)


def note_open(of: type) -> type:
    """Notes what open rows are objects of."""
    _classes[True] = of
    return of


def as_row(value: Any) -> Any:
    """A new dict of the program's as a row; itself where there are none."""
    session: Any = current_session()
    if session is None or not session.is_tracing or not session.heap.has_rows:
        return value
    if type(value) is not dict or not 0 < len(value) <= MAX_KEYS:
        return value
    if not all(map(may_be_key, value)):
        return value
    of = session.heap.class_of_rows(row_class(tuple(value)))
    return value if of is None else made_row(session.heap, of, value)


def made_row(
    heap: Any, of: type, value: dict[str, Any], others: Any = None, given: Sequence[int] = ()
) -> Any:
    """A row with what a new dict has, which is empty afterwards; others: a dict out of JSON whose
    keys an open row has, too; given: the ids of values to which its maker refers, too."""
    made: Any = begun(of)
    name, own, young = of.__name__, keys_of(of), young_of(made)
    heap.putting = name
    if is_open(of):
        young[OTHERS] = heap.no_keys() if others is None else others
    for n, key in enumerate([*value]):
        if n >= len(own):  # its class is one of several forms
            heap.note_late(name, key, field_of(key), count_of(key), value[key])
            young[count_of(key)] = n + 1
        young[field_of(key)] = value.pop(key)
    for key in heap.late_keys(name):
        young.setdefault(field_of(key), None)
        young.setdefault(count_of(key), 0)
    heap.keep_all(made, given)
    heap.putting = ""
    return made
