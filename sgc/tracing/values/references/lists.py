"""Lists that attributes of objects have, which all that have them see change."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import NOTHING, OptionalType
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_loops import Backwards, Items
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.computing import whole
from sgc.tracing.values.items import type_of
from sgc.tracing.values.loops.unpacking import unpacked, unpacked_by
from sgc.tracing.values.references.fields import (
    PLAIN_CELLS,
    allowed,
    is_cell,
    is_cell_type,
    joined_all,
)
from sgc.tracing.values.references.holders import held_by, look_at_frames, others_of


class ReferenceList(AbstractList):
    """A list that attributes of objects have: its value is read where it is used."""

    __slots__ = ("name", "number")

    is_live = is_cell = True

    @property
    def layout_type(self) -> Type:
        """The type of the list, with those of the lists and dicts that it holds."""
        found: Type = self.session.heap.type_at(self.name)
        return found

    def __init__(self, name: str, number: Symbol, session: Any) -> None:
        self.name, self.number, self.session = name, number, session

    @property
    def whole_type(self) -> Type:
        found: Type = self.session.heap.columns[self.name, ""].type.item
        return found

    @property
    def item_type(self) -> Type:
        found = self.whole_type.item
        assert found is not None
        return found

    @property
    def symbol(self) -> Symbol:  # type: ignore[override]
        """Says the list's type; it is no value of the graph, as `now` is."""
        return Symbol("", self.whole_type)

    def now(self) -> AbstractList:
        """The list as it is now."""
        return AbstractList(self.session.heap.value_of(self.name, self.number), self.session)

    def whole(self) -> AbstractList:
        """The list as it is now, with what the lists and dicts in it are now."""
        item = self.layout_type.item
        is_filled = is_cell_type(item) and not isinstance(item, OptionalType)
        return self.session.heap.filled(self.name, self.now()) if is_filled else self.now()  # type: ignore[no-any-return]

    def _become(self, fn: str, *args: Any, items: Sequence[Any] = ()) -> None:
        value, heap = _Changing(self.now().symbol, self.session), self.session.heap
        heap.note_putting(self.name)
        value._become(fn, *args, items=items)
        heap.note_putting("")
        self.session.heap.set_value(self.name, self.number, value.symbol)

    def append(self, item: Any) -> None:
        n_more = others_of(item, "append")
        held = self._held(item, n_more)
        self._become("push", held, items=[held])

    def insert(self, index: Any, item: Any) -> None:
        n_more = others_of(item, "insert")
        held = self._held(item, n_more)
        self._become("insert", whole(index), held, items=[held])

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice):
            self._needs_items()
        n_more = others_of(item, "setitem")
        held = self._held(item, n_more)
        self._become("put", whole(index), held, items=[held])

    def extend(self, items: Any) -> None:
        if type(items) is list and is_cell_type(self.layout_type.item):
            look_at_frames()
            n_more = [held_by(items, n) for n in range(len(items))]
            items = [self._held(each, n) for each, n in zip(items, n_more, strict=True)]
        super().extend(items)

    def _held(self, item: Any, n_more: int) -> Any:
        """An item as it is put into the list. n_more: how many others refer to it."""
        is_one = type(item) in PLAIN_CELLS or is_cell(item) or type(item) is AbstractList
        if is_one or is_cell_type(self.layout_type.item):
            return self.session.heap.held_in(self.name, item, n_more)
        return self.session.listed(item)

    def becomes(self, value: AbstractList) -> None:
        self.session.heap.set_value(self.name, self.number, value.symbol)

    def pop(self, index: Any = -1) -> Any:
        index, before = whole(index), self.now()
        self._become("without", index)
        return before.sure_item(index)

    def __iter__(self) -> Iterator[Any]:
        if not is_for_of(sys._getframe(1)):
            n = unpacked_by(sys._getframe(1))
            if n is None:
                self._needs_items()
            return iter(unpacked(self.session, self.now(), n, self.item_type))
        return self.session.looped(Items(self))  # type: ignore[no-any-return]

    def __reversed__(self) -> Iterator[Any]:
        return iter(()) if self.is_void else Backwards(self)

    @property
    def is_filled(self) -> bool:
        return False

    def n_items(self) -> Any:
        return self.now().n_items()

    @property
    def is_void(self) -> bool:  # type: ignore[override]
        """Whether nothing was ever put into it."""
        return self.item_type == NOTHING

    def sure_item(self, index: Any) -> Any:
        return self.now().sure_item(index)


def _by_value(name: str) -> Any:
    def read(self: ReferenceList, *args: Any) -> Any:
        # What nothing was ever put into is empty.
        value: Any = [] if self.is_void and name in _OF_LISTS else self.now()
        if name in _AS_A_WHOLE and not self.is_void:
            value = self.whole()
        return getattr(value, name)(*args)  # raises Python's own error

    return read


_OF_LISTS = frozenset(dir(list))
_AS_A_WHOLE = frozenset({"__str__", "__repr__", "__eq__", "__ne__"})
for _name in (
    "__getitem__", "__contains__", "__bool__", "__eq__", "__ne__", "__str__", "__repr__",
    "__add__", "__radd__", "__mul__", "__rmul__", "copy", "count", "index",
):  # fmt: skip
    setattr(ReferenceList, _name, _by_value(_name))


class _Changing(AbstractList):
    """The value of such a list, as it changes: all that have the list see that."""

    __slots__ = ()

    def _refuse_others(self) -> None:
        """Does nothing: the value is no other's."""

    def _with(self, *items: Any) -> Type:
        found = [each for each in (self.item_type, *map(type_of, items)) if each != NOTHING]
        wider = joined_all("an attribute", map(allowed, found))
        return types.list_of(wider or NOTHING)
