"""`keys()`, `values()` and `items()` of dicts that attributes of objects have, and loops over
them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import NOTHING, row_of
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_loops import Items
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.computing import computed
from sgc.tracing.values.loops.unpacking import unpacked, unpacked_by

_PAIRS = "def piece(a):\n    return list(a.items())"


class ReferenceView(AbstractList):
    """The keys, values or items of such a dict, read where they are used."""

    __slots__ = ("of", "part")

    is_live = True

    def __init__(self, of: Any, part: str) -> None:
        self.of, self.part, self.session = of, part, of.session

    @property
    def item_type(self) -> Type:
        found = self.of.whole_type
        key, value = found.key or NOTHING, found.value or NOTHING
        return {"keys": key, "values": value}.get(self.part) or row_of((key, value))

    @property
    def whole_type(self) -> Type:
        return types.list_of(self.item_type)

    @property
    def symbol(self) -> Symbol:  # type: ignore[override]
        return Symbol("", self.whole_type)

    @property
    def is_void(self) -> bool:  # type: ignore[override]
        found: bool = self.of.is_void
        return found

    def now(self) -> AbstractList:
        """What the dict has now, as a list of the graph."""
        heap, value = self.session.heap, self.of.value()
        if self.part == "items":
            return AbstractList(heap.computed(_PAIRS, (value,), self.whole_type), self.session)
        found: AbstractList = computed(self.session, self.part, value, type_=self.whole_type)
        return found

    def iterated(self) -> Any:
        return Walk(self)

    def __iter__(self) -> Iterator[Any]:
        return self.begun(sys._getframe(1))

    def begun(self, frame: FrameType) -> Iterator[Any]:
        """What a frame goes over."""
        if is_for_of(frame):
            return self.session.looped(Items(Walk(self)))  # type: ignore[no-any-return]
        n = unpacked_by(frame)
        if n is None:
            self._needs_items()
        return iter(unpacked(self.session, self.now(), n, self.item_type))

    def n_items(self) -> Any:
        return self.of.length()

    def sure_item(self, index: Any) -> Any:
        return self.now().sure_item(index)


def _by_value(name: str) -> Any:
    def read(self: ReferenceView, *args: Any) -> Any:
        value: Any = [] if self.is_void else self.now()
        return getattr(value, name)(*args)  # raises Python's own error

    return read


for _name in (
    "__getitem__", "__contains__", "__bool__", "__eq__", "__ne__", "__add__", "__radd__",
    "__mul__", "__rmul__",
):  # fmt: skip
    setattr(ReferenceView, _name, _by_value(_name))


class Walk:
    """A loop over a dict, which fails as Python's does if its keys have changed since it began."""

    is_live, is_filled = True, False

    def __init__(self, view: ReferenceView) -> None:
        self.session, self._view = view.session, view
        self._column = self._column_now()
        self._keys = None if view.is_void else self._keys_now()

    def _column_now(self) -> Symbol:
        found: Symbol = self.session.heap.columns[self._view.of.name, ""]
        return found

    def _keys_now(self) -> AbstractList:
        return ReferenceView(self._view.of, "keys").now()

    @property
    def symbol(self) -> Symbol:
        return self._view.symbol

    @property
    def is_void(self) -> bool:
        return self._keys is None

    def n_items(self) -> Any:
        return self._view.of.length() if self._keys is None else self._keys.n_items()

    def sure_item(self, index: Any) -> Any:
        assert self._keys is not None
        key = self._keys.sure_item(index)
        if self._view.part == "keys":
            return key
        value = self._view.of.sure_value(key)
        return value if self._view.part == "values" else (key, value)

    def end_turn(self) -> None:
        """Tells whether the dict still has the keys that it had."""
        if self._column_now() == self._column:
            return
        now = self._keys_now()
        if computed(self.session, "eq", now, self._keys):
            return
        assert self._keys is not None
        is_one = computed(self.session, "eq", now.n_items(), self._keys.n_items())
        what = "keys changed" if is_one else "changed size"
        raise RuntimeError(f"dictionary {what} during iteration")

    def end_loop(self, is_whole: bool) -> None:
        """Does nothing: a dict stays as it is."""
