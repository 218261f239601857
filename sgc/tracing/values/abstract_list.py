"""Abstract lists: lists whose length is known only at run time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NoReturn

from sgc.core.places import is_ours
from sgc.core.stops import IN_A_TOOL, INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.functions import FUNCTIONS
from sgc.ir.types import Kind
from sgc.tracing.code.in_place import refuse_extended
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.row_types import (
    joined_item,
)
from sgc.tracing.kinds.text_types import Known, known_of
from sgc.tracing.values.abstract_loops import Backwards, Items, Loop
from sgc.tracing.values.abstract_text import sliced
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.computing import attempted, computed, note_known, part_by, whole
from sgc.tracing.values.items import StandIn, argument, type_of
from sgc.tracing.values.json.dict_views import SetOperations, like, needs_list, part_of, shown
from sgc.tracing.values.loops.unpacking import unpacked, unpacked_by
from sgc.tracing.values.recorder import Recorder

_END = object()


class AbstractList(SetOperations):
    """A list whose length is known only at run time. The program can change a list that it has
    made: the list then stands for the new value.
    """

    __slots__ = ("session", "symbol")

    part_type = types.JSON  # the type of the items, if the list's own type does not tell it

    def __init__(self, symbol: Symbol, session: Recorder) -> None:
        self.symbol = symbol
        self.session = session

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self) if is_ours(1) else list

    @property
    def item_type(self) -> types.Type:
        return self.symbol.type.item or self.part_type

    def __getitem__(self, key: Any) -> Any:
        if part_of(self) and not is_ours(1):
            return like(self)[key]  # raises Python's own error
        if isinstance(key, slice):
            found = sliced(self.session, self, key, self.symbol.type)
            return _known_as(self, found)
        if not hasattr(key, "__index__"):
            return [][key]  # raises Python's own error
        found = part_by(self, key, self.item_type)
        return self._told(self._item(whole(key)) if found is None else self._read(found))

    def _item(self, index: Any) -> Any:
        n_sure = known_of(self.symbol, self.session).min_items
        is_sure = isinstance(index, int) and -n_sure <= index < n_sure
        if is_sure:
            return self.sure_item(index)
        return self._read(
            attempted(
                self.session, "item", self, index, type_=self.item_type, errors=("IndexError",)
            )
        )

    def __contains__(self, item: Any) -> bool:
        return bool(self._looked_for("has", item))

    def _looked_for(self, fn: str, item: Any) -> Any:
        """`has`, `where` or `n_of`, which finds the item."""
        if fn != "has" and part_of(self):
            needs_list(self)
        return computed(self.session, fn, self, argument(self.session, item))

    def __bool__(self) -> bool:
        if known_of(self.symbol, self.session).min_items:
            return True
        return bool(computed(self.session, "truth", self))

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other, False)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other, True)

    def _compared(self, fn: str, other: object, otherwise: bool) -> Any:
        if part := part_of(self):
            if part != "values" and issubclass(type(other), (Set, AbstractList)):
                needs_list(self)
            return otherwise if other is not self else not otherwise
        is_list = isinstance(other, (list, AbstractList))
        if not is_list or (isinstance(other, AbstractList) and part_of(other)):
            return otherwise
        return computed(self.session, fn, self, argument(self.session, other))

    def __str__(self) -> str:
        text: str = shown(self) if part_of(self) else computed(self.session, "str", self)
        return text

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        format(like(self) or [], spec)  # raises Python's own error
        return str(self)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        n = unpacked_by(frame)
        if n is not None:
            return map(self._told, unpacked(self.session, self, n, self.item_type))
        if not is_for_of(frame):
            self._needs_items()
        return self.session.looped(Items(self.iterated()))

    def __reversed__(self) -> Iterator[Any]:
        return Backwards(self.iterated())

    def as_list(self) -> Any:
        """The list whose items a loop over this value gets."""
        return self

    def iterated(self) -> AbstractList:
        """The list that a loop over this value iterates."""
        return self

    @property
    def is_filled(self) -> bool:
        return known_of(self.symbol, self.session).min_items > 0

    def n_items(self) -> Any:
        return self.session.compute("len", self)

    def end_turn(self) -> None:
        """Does nothing: a list stays as it is."""

    def end_loop(self, is_whole: bool) -> None:
        """Does nothing: a list stays as it is."""

    def sure_item(self, index: Any) -> Any:
        """The item at an index that is certain to exist."""
        item = computed(self.session, "item", self, index, type_=self.item_type)
        return self._read(self._told(item))

    def _read(self, item: Any) -> Any:
        """An item as the program reads it."""
        return self.session.seen(item) if self.item_type.kind is Kind.JSON else item

    def _told(self, item: Any) -> Any:
        """An item, with what is known of the list's items."""
        shape = known_of(self.symbol, self.session).shape
        return item if shape is None or self.symbol.type == types.JSON else shape.item(item)

    def _needs_items(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = self.session.name_of(self.symbol)
        bind = f"give the list when compiling: --bind {name}='[…]'; or "
        stop(
            f"the items or the length of {name} are needed while tracing",
            hint="write `for x in xs:`, also over enumerate(xs), reversed(xs) or zip(xs, ys), "
            "outside of `except`; or use xs[i], len(xs), `x in xs`, sgc.join(sep, xs), [x] + xs; "
            "or " + (bind if self.session.is_parameter(name) else "") + INTERPRET,
        )

    __len__ = __lt__ = __le__ = __gt__ = __ge__ = _needs_items

    # -- new lists --------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if part_of(self) or not isinstance(other, (list, AbstractList)):
            return like(self) + other if part_of(self) else NotImplemented
        if isinstance(other, AbstractList) and part_of(other):
            needs_list(other)
        given, items = argument(self.session, other), _items_of(other)
        made = computed(self.session, "plus", self, given, type_=self._with(*items))
        return holding(made, items)

    def __radd__(self, other: Any) -> Any:
        if type(other) is not list:
            return NotImplemented
        name = self.session.name_of(self.symbol)
        is_extended = refuse_extended(other, name, sys._getframe(1))
        if part_of(self) and not is_extended:
            return other + like(self)
        given = argument(self.session, other)
        made = computed(self.session, "plus", given, self, type_=self._with(*other))
        return holding(made, other)

    def __mul__(self, times: Any) -> Any:
        if part_of(self):
            return like(self) * times
        return computed(self.session, "times", self, whole(times), type_=self.symbol.type)

    __rmul__ = __mul__

    def copy(self) -> Any:
        return self[:]

    def _with(self, *items: Any) -> types.Type:
        """The type of a list of its items and these."""
        return types.list_of(joined_item([self.item_type, *map(type_of, items)]))

    # -- changes ----------------------------------------------------------------------------

    @unhooked
    def _become(self, fn: str, *args: Any, items: Sequence[Any] = ()) -> None:
        """Changes the list, which now stands for a function's result. items: those put in."""
        self._refuse_others()
        record = attempted if FUNCTIONS[fn].errors and fn != "slice" else computed
        given = [argument(self.session, arg) for arg in args]
        made = record(self.session, fn, self, *given, type_=self._with(*items))
        self.session.note_changed(self.symbol)
        self.symbol = made.symbol
        holding(self, items)

    def becomes(self, value: AbstractList) -> None:
        """Changes the list, which gets another list's items."""
        self._refuse_others()
        self.session.note_changed(self.symbol)
        self.symbol = value.symbol

    def _refuse_others(self) -> None:
        if part_of(self):
            needs_list(self)
        if not self.session.is_made(self.symbol):
            stop(
                f"{self.session.name_of(self.symbol)}, a list of others that is known only at run "
                "time, is changed",
                hint="change a copy of it, list(xs); or " + INTERPRET,
            )

    def append(self, item: Any) -> None:
        item = self.session.listed(item)
        self._become("push", item, items=[item])

    def extend(self, items: Any) -> None:
        if hasattr(type(items), "__next__") and not isinstance(items, (Loop, AbstractList)):
            self._take(items)
        else:
            found = items if isinstance(items, AbstractList) else list(items)
            self._become("plus", found, items=_items_of(found))

    def _take(self, items: Iterator[Any]) -> None:
        """Appends items one by one, as Python does: taking an item may fail, or read the list."""
        while (item := next(items, _END)) is not _END:
            self.append(item)

    def __iadd__(self, items: Any) -> AbstractList:
        self.extend(items)
        return self

    def __imul__(self, times: Any) -> AbstractList:
        self._become("times", whole(times))
        return self

    def insert(self, index: Any, item: Any) -> None:
        self._become("insert", whole(index), item, items=[item])

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice):
            self._needs_items()
        self._become("put", whole(index), item, items=[item])

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            self._delete(index)
            return
        index = whole(index)
        why = self.session.attempt("put", self, index, None)
        if why is not None:  # with the message for an assignment
            raise IndexError(why)
        self._become("without", index)

    def _delete(self, items: slice) -> None:
        if items.step is not None or (items.start is not None and items.stop is not None):
            self._needs_items()
        if items.start is None and items.stop is None:
            self.clear()
        else:
            self._become("slice", whole(items.stop), whole(items.start), None)

    def pop(self, index: Any = -1) -> Any:
        index, before = whole(index), AbstractList(self.symbol, self.session)
        self._become("without", index)
        return before.sure_item(index)

    def remove(self, item: Any) -> None:
        self._become("removed", item)

    def clear(self) -> None:
        self._become("slice", 0, 0, None)

    def reverse(self) -> None:
        self._become("slice", None, None, -1)

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        if key is not None:
            self._needs_items()
        self._become("sorted", bool(reverse))

    def count(self, item: Any) -> Any:
        return self._looked_for("n_of", item)

    def index(self, item: Any, *bounds: Any) -> Any:
        if bounds:
            self._needs_items()
        return attempted(self.session, "where", self, argument(self.session, item))

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'list'")

    def __deepcopy__(self, memo: Any) -> Any:
        code = "import copy\ndef piece(a):\n    return copy.deepcopy(a)"
        return self.session.coded(code, (self,), self.symbol.type)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        stop("a value known only at run time cannot be copied or pickled", IN_A_TOOL)


def _items_of(items: Any) -> Sequence[Any]:
    """The items of a list; for an abstract one, a stand-in with the items' type."""
    return [StandIn(items.item_type)] if isinstance(items, AbstractList) else items


def _known_as(before: AbstractList, after: AbstractList) -> AbstractList:
    """A list made of another list's items, with what is known of them."""
    shape = known_of(before.symbol, before.session).shape
    if shape is not None:
        note_known(after.session, after, Known(shape=shape))
    return after


def holding(made: Any, items: Iterable[Any]) -> Any:
    """A value of the graph that may hold copies of these items as they are now."""
    if isinstance(made, AbstractList):
        made.session.held.hold(made.symbol, filter(_is_changeable, items))
    return made


def _is_changeable(item: Any) -> bool:
    if type(item) is EndedState:
        return any(map(_is_changeable, item.parts.values()))
    if is_record(item):
        return not form_of(item) or any(map(_is_changeable, parts_of(item).values()))
    return type(item) in (list, dict) or isinstance(item, AbstractList)


Sequence.register(AbstractList)  # so that `case [a, b]` takes its length, which stops the trace
