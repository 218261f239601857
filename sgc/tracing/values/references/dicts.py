"""Dicts and sets that attributes of objects have, which all that have them see change."""

from __future__ import annotations

from typing import Any, NoReturn

from sgc.tracing.kinds.row_types import DictType
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.items import StandIn, argument
from sgc.tracing.values.references.dict_reading import ReadDict
from sgc.tracing.values.references.fields import FACTORIES, LISTS_OF_ONE, key_type
from sgc.tracing.values.references.holders import others_of

_NOTHING = object()
_SET = "def piece(a, b, c):\n    return {**a, b: c}"
_WITHOUT = "def piece(a, b):\n    return {k: v for k, v in a.items() if k != b}"
_MERGED = "def piece(a, b):\n    return {**a, **b}"
_ADDED = "def piece(a, b):\n    return {**a, **dict.fromkeys(b)}"
_MOST = "def piece(a):\n    return sorted(a.items(), key=lambda p: p[1], reverse=True)"
_EMPTY = "def piece():\n    return {}"


class ReferenceDict(ReadDict):
    """A dict or set that attributes of objects have: its value is read where it is used. In the
    graph a set is a dict of its items."""

    __slots__ = ()

    def _defaulted(self, key: Any) -> Any:
        form = self.whole_type.form
        if form == "Counter":
            return self.get(key, 0)
        if not self.has(key):
            self._put(key, FACTORIES[form](), 0)
        return self.sure_value(key)

    def _put(self, key: Any, value: Any, n_more: int) -> None:
        """Sets the value of a key. n_more: how many others than this refer to it."""
        heap = self.session.heap
        key = self._plain(key)
        type_ = key_type(key)
        if self.is_set:
            heap.note_at(self.name, DictType.of(type_, None, "set"))
            held = None
        else:
            held = heap.held_in(self.name, value, n_more, type_)
        self._turn(_SET, self._key(key), argument(self.session, held))

    def _turn(self, code: str, *args: Any) -> None:
        heap = self.session.heap
        made = heap.computed(code, (self.value(), *args), self.whole_type)
        heap.set_value(self.name, self.number, made)

    def __setitem__(self, key: Any, value: Any) -> None:  # type: ignore[override]
        n_more = others_of(value, "setitem")
        if self.is_set:
            self.needs_type()
        self._put(key, value, n_more)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        n_more = others_of(default, "insert")
        if not self.has(key):
            self._put(key, default, n_more)
        return self.sure_value(key)

    def __delitem__(self, key: Any) -> None:  # type: ignore[override]
        if self.is_set:
            self.needs_type()
        if self.has(key):
            self._turn(_WITHOUT, self._key(key))
        elif self.whole_type.form != "Counter":
            raise KeyError(key)

    def pop(self, key: Any = _NOTHING, default: Any = _NOTHING) -> Any:
        if key is _NOTHING or self.is_set:
            self.needs_type()
        if self.has(key):
            found = self.sure_value(key)
            self._turn(_WITHOUT, self._key(key))
            return found
        if default is _NOTHING:
            raise KeyError(key)
        return default

    def clear(self) -> None:  # type: ignore[override]
        heap = self.session.heap
        heap.set_value(self.name, self.number, heap.computed(_EMPTY, (), self.whole_type))

    def update(self, *others: Any, **named: Any) -> None:  # type: ignore[override]
        form = self.whole_type.form
        for other in (*others, *((named,) if named else ())):
            if form == "set":
                self._add_all(other)
            elif form == "Counter":
                self._count_all(other)
            elif type(other) is ReferenceDict and not other.is_set:
                self._merge(other)
            elif type(other) is dict and not any(type(v) in LISTS_OF_ONE for v in other.values()):
                for key, value in other.items():
                    self._put(key, value, 0)
            else:
                self.needs_type()

    def _merge(self, other: ReferenceDict) -> None:
        if other.is_void:
            return
        if other.whole_type != DictType.of(other.whole_type.key, other.whole_type.value, "dict"):
            self.needs_type()
        known, found = self.whole_type, other.layout_type
        assert isinstance(found, DictType)
        self.session.heap.note_at(self.name, DictType.of(found.key, found.value, known.form))
        if self.whole_type.value != other.whole_type.value:
            self.needs_type()
        self._turn(_MERGED, other.value())

    def _add_all(self, items: Any) -> None:
        if type(items) is AbstractList:
            key = items.item_type
            key_type(StandIn(key))
            self.session.heap.note_at(self.name, DictType.of(key, None, "set"))
            self._turn(_ADDED, items)
        elif type(items) in (list, tuple):
            for each in items:
                self.add(each)
        else:
            self.needs_type()

    def _count_all(self, items: Any) -> None:
        if type(items) not in (list, tuple):
            self.needs_type()
        for each in items:
            self[each] = self[each] + 1

    def __ior__(self, other: Any) -> Any:
        if self.whole_type.form == "Counter":
            self.needs_type()
        self.update(other)
        return self

    # -- methods of sets ----------------------------------------------------------------------

    def _refuse_dicts(self) -> None:
        if not self.is_set:
            self.needs_type()

    def add(self, item: Any) -> None:
        self._refuse_dicts()
        self._put(item, None, 0)

    def discard(self, item: Any) -> None:
        self._refuse_dicts()
        given = self._key(item)
        if not self.is_void:
            self._turn(_WITHOUT, given)

    def remove(self, item: Any) -> None:  # type: ignore[override]
        self._refuse_dicts()
        if not self.has(item):
            raise KeyError(item)
        self._turn(_WITHOUT, self._key(item))

    def most_common(self, n: Any = None) -> Any:
        """The items of a Counter in the order of their counts."""
        if self.whole_type.form != "Counter" or (n is not None and type(n) is not int):
            self.needs_type()
        if self.is_void:
            return []
        made = self.session.heap.computed(_MOST, (self.value(),), self.items().whole_type)
        found = AbstractList(made, self.session)
        return found if n is None else found[: max(n, 0)]


def _refused(self: ReferenceDict, *args: Any, **kwargs: Any) -> NoReturn:
    self.needs_type()


for _name in (
    "iadd", "isub", "imul", "iand", "ixor", "or", "ror", "and", "rand", "sub", "rsub", "xor",
    "rxor", "add", "radd", "reversed",
):  # fmt: skip
    setattr(ReferenceDict, f"__{_name}__", _refused)
for _name in ("popitem", "sort", "append", "extend", "insert", "reverse", "fromkeys"):
    setattr(ReferenceDict, _name, _refused)
