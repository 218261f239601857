"""Cells: the lists and dicts that attributes of objects have. Each is a number, too, and an index
into a column of its own, so that all that have it see a change.

The cells of an attribute have a name, `Class.attribute`; those that they hold, that name and `[]`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.graph import Lit, Ref
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import (
    NOTHING,
    OBJECT,
    DictType,
    OptionalType,
    RefType,
    holds_references,
    optional,
)
from sgc.tracing.values.abstract_list import AbstractList, as_item
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.items import argument, as_data
from sgc.tracing.values.references.fields import (
    LOCAL,
    PLAIN_CELLS,
    cell_part,
    cells,
    code_type,
    field_type,
    fit,
    inner,
    is_cell,
    is_cell_type,
    item_type,
    joined,
    joined_inside,
)
from sgc.tracing.values.references.holders import held_by, is_held
from sgc.tracing.values.references.reference import INSIDE, Layout, refuse


class Cells:
    """The columns of one run of a trace, as far as they are of lists and dicts."""

    def __init__(self, session: Any, layout: Layout) -> None:
        self._session, self._layout = session, layout
        self.columns: dict[tuple[str, str], Symbol] = {}
        self.is_own = False  # what is done now does not look at numbers
        self.putting = ""  # the cells of a variable into which something is put

    def _begin(self, name: str, key: str, type_: Type) -> None:
        (symbol,) = self._session.emit("list", [("v", types.list_of(type_))], items=())
        self.columns[name, key] = symbol

    def one(self, name: str) -> str:
        """The name that stands for a name of cells: where a list goes from one attribute to
        another, both have one column."""
        return self._layout.one(name)

    def _begin_cells(self, name: str, type_: Type) -> None:
        """Makes the column of the cells of a name, and of those that they hold."""
        if self.one(name) != name:
            return
        type_ = cell_part(type_) or type_
        self._begin(name, "", self._content(name, type_))
        held = type_.value if isinstance(type_, DictType) else type_.item
        if held is not None and is_cell_type(held):
            self._begin_cells(inner(name), held)

    def stored(self, name: str, type_: Type) -> Type:
        """The type of what a column has for values of a type: numbers for lists and dicts."""
        if not is_cell_type(type_):
            return type_
        to = RefType.to(self.one(name))
        return optional(to) if isinstance(type_, OptionalType) else to

    def _content(self, name: str, type_: Type) -> Type:
        """The type of a cell's value."""
        if isinstance(type_, DictType):
            value = None if type_.value is None else self.stored(inner(name), type_.value)
            return DictType.of(type_.key, value, type_.form)
        return types.list_of(self.stored(inner(name), type_.item or NOTHING))

    def type_at(self, name: str) -> Type:
        """The type of the cells of a name."""
        of, key, depth = _parsed(name)
        found = cell_part(self._layout.fields[of][key])
        for _ in range(depth):
            found = cell_part(found.value if isinstance(found, DictType) else found and found.item)
        assert found is not None
        return found

    @abstractmethod
    def _note(self, name: str, found: dict[str, Type]) -> None:
        """Traces the program anew if attributes of a class are to have wider types."""

    def note_at(self, name: str, found: Type) -> None:
        """Traces the program anew if the cells of a name are to have a wider type."""
        if found != self.type_at(name):
            of, key, depth = _parsed(name)
            self._note(of, {key: joined_inside(self._layout.fields[of][key], depth, found)})

    # -- of variables -----------------------------------------------------------------------

    def local(self, value: Any, place: str) -> Any:
        """A new dict or set of a variable, which is made at a place; itself if it is no cell."""
        if not self._layout.is_used or place in self._layout.plain:
            return value
        name, type_ = self.one(cells(LOCAL, place)), field_type(value)
        self._note(LOCAL, {place: type_})
        return self.local_of(self._made(name, self.type_at(name), value), type_, place)

    def local_of(self, made: Symbol, type_: Type, place: str) -> Any:
        """The same of a value of the graph."""
        name = self.one(cells(LOCAL, place))
        self._note(LOCAL, {place: type_})
        number = self._number(name, "", RefType.to(name))
        self._push(name, "", made)
        return self._session.read(number)

    def copied(self, value: Any, place: str) -> Any:
        """A new dict of a variable with the keys and values of another; those that are lists or
        dicts are the same."""
        if value.is_void:
            return self.local({}, place)
        key, held = value.layout_type.key, value.layout_type.value
        self._note(LOCAL, {place: DictType.of(key, held, "dict")})
        name = self.one(cells(LOCAL, place))
        if is_cell_type(held) and self.one(inner(name)) != self.one(inner(value.name)):
            self._unite(self.one(inner(name)), self.one(inner(value.name)))
        made = self.computed(AS_DICT, (value.value(),), self._content(name, self.type_at(name)))
        return self.local_of(made, self.type_at(name), place)

    def note_putting(self, name: str) -> None:
        """Notes that something is put into a cell; a refusal gives up those of variables."""
        self.putting = name if name.startswith(LOCAL) else ""

    def give_up(self, name: str) -> None:
        """Traces the program anew without cells at a place."""
        place = _parsed(name)[1]
        self._layout.plain.add(place)
        self._layout.fields[LOCAL].pop(place, None)
        own = cells(LOCAL, place)
        self._layout.same = {
            a: b for a, b in self._layout.same.items() if own not in (_root(a), _root(b))
        }
        self._session.begin_anew("a dict is used as no cell can be")

    # -- values -----------------------------------------------------------------------------

    def _number(self, name: str, key: str, type_: RefType) -> Symbol:
        column = self.columns[name, key]
        (symbol,) = self._session.emit(
            "compute", [("v", type_)], fn=Lit("len"), args=(Ref(column.name),)
        )
        return symbol  # type: ignore[no-any-return]

    def _push(self, name: str, key: str, value: Any) -> None:
        self._become(name, key, "push", value)

    def _become(self, name: str, key: str, fn: str, *args: Any) -> None:
        column = self.columns[name, key]
        made = self._session.compute(fn, column, *args, type_=column.type)
        self.columns[name, key] = made.symbol

    def _cell(self, name: str, value: Any, n_more: int) -> Symbol:
        """The number of a list or dict that becomes one of a name. n_more: how many others refer to
        it."""
        name = self.one(name)
        if is_cell(value):
            if value.name != name:
                self._unite(value.name, name)
            found: Symbol = value.number
            return found
        is_shared = not self._is_own(value) or is_held(value, n_more)
        if is_shared:
            self._layout.copied.add(name)
            self._refuse_shared(name)
        made = self._made(name, self.type_at(name), value)
        number = self._number(name, "", RefType.to(name))
        self._push(name, "", made)
        if is_shared:  # the trace stops where it is used after others have changed it
            self._session.held.hold(self.columns[name, ""], [value])
        return number

    def _refuse_shared(self, name: str) -> None:
        """Stops the trace if lists of a name are changed, of which others hold the same list."""
        names = (self._layout.copied, self._layout.changed)
        copied, changed = ({self.one(each) for each in found} for found in names)
        if name in copied & changed:
            refuse(
                "the list or dict that an attribute is set to is held elsewhere, too",
                hint="give it a copy, list(xs); or " + INTERPRET,
            )

    def _unite(self, name: str, other: str) -> None:
        """Traces the program anew with one column for two names, or refuses what has no type."""
        is_inside = name.startswith(other) or other.startswith(name)
        if is_inside or not fit(self.type_at(name), self.type_at(other)):
            refuse("two attributes have the same list", "give each a copy; or " + INTERPRET)
        kept = other if name.startswith(LOCAL) else name
        self._layout.same[name if kept == other else other] = kept
        self._settle()
        self._session.begin_anew("a list goes from one attribute to another")

    def _settle(self) -> None:
        """Gives the names of one column one type."""
        for name in (*self._layout.same,) * len(self._layout.same):
            kept = self.one(name)
            type_ = joined(kept, name, self.type_at(kept), self.type_at(name))
            for each in (name, kept):
                of, key, depth = _parsed(each)
                fields = self._layout.fields[of]
                wider = joined_inside(fields[key], depth, type_)
                fields[key] = joined(of, key, fields[key], wider)

    def _is_own(self, value: Any) -> bool:
        """Whether a list or dict is the program's own, and new as far as the graph knows."""
        if type(value) in PLAIN_CELLS:
            return True
        session, symbol = self._session, value.symbol
        return bool(
            session.is_made(symbol) or (session.is_code(symbol) and session.is_given(symbol))
        )

    def _made(self, name: str, type_: Type, value: Any) -> Any:
        """The value of a new cell in the graph."""
        if code_type(value) is not None:
            return self.computed(_SAME, (value,), self._content(name, type_))
        if isinstance(type_, DictType):
            keys = sorted(value, key=repr) if type_.form == "set" else [*value]
            given = [argument(self._session, key) for key in keys]
            if type_.form == "set":
                return self.computed(_OF_KEYS, (given,), self._content(name, type_))
            held = self._parts(name, type_.value, value, keys)
            return self.computed(_OF_PAIRS, (given, held), self._content(name, type_))
        if type(value) is list and is_cell_type(type_.item):
            return self._parts(name, type_.item, value, range(len(value)))
        return as_data(self._session, value)

    def _parts(self, name: str, type_: Type | None, value: Any, keys: Any) -> list[Any]:
        if not is_cell_type(type_):
            return [argument(self._session, value[key]) for key in keys]
        made: list[Any] = []
        for key in keys:
            n_more = held_by(value, key)  # before another refers to it
            is_none = value[key] is None
            number = None if is_none else self._cell(inner(name), value[key], n_more)
            made.append(None if number is None else AbstractNumber(number, self._session))
        return made

    def held_in(self, name: str, value: Any, n_more: int, key: Type | None = None) -> Any:
        """What is put into a cell, as it is there. n_more: how many others refer to it; key: the
        type of its key in a dict."""
        self.note_putting(name)
        known, found = self.type_at(name), item_type(value, name)
        if isinstance(known, DictType):
            self.note_at(name, _joined_dict(known, key, found))
        else:
            self.note_at(name, types.list_of(found))
        self.note_putting("")
        if not is_cell_type(found):
            return as_item(value)
        return AbstractNumber(self._cell(inner(name), value, n_more), self._session)

    def value_of(self, name: str, number: Symbol) -> Symbol:
        """The value that a cell has now."""
        return self.held_at(self.columns[name, ""], number)

    def held_at(self, column: Symbol, number: Symbol) -> Symbol:
        """What a column has at a number."""
        assert column.type.item is not None
        (symbol,) = self._session.emit(
            "compute", [("v", column.type.item)], fn=Lit("item"),
            args=(Ref(column.name), Ref(number.name)),
        )  # fmt: skip
        return symbol  # type: ignore[no-any-return]

    def filled(self, name: str, value: AbstractList) -> AbstractList:
        """The value of a list of lists or dicts, with what these are now; itself if that cannot be
        in the graph."""
        held = self.one(inner(name))
        within = self._content(held, self.type_at(held))
        is_dict = isinstance(within, DictType)
        if holds_references(within) or (isinstance(within, DictType) and within.form != "dict"):
            return value
        type_ = types.list_of(OBJECT if is_dict else within)
        made = self.computed(_FILLED, (value, self.columns[held, ""]), type_)
        return AbstractList(made, self._session)

    def filled_dict(self, name: str, value: Any) -> Any:
        """The same of a dict."""
        type_ = self.type_at(name)
        if not is_cell_type(type_.value) or isinstance(type_.value, OptionalType):  # type: ignore[attr-defined]
            return value
        held = self.one(inner(name))
        within = self._content(held, self.type_at(held))
        is_known = isinstance(type_, DictType) and type_.form == "dict" and within.item is not None
        if not is_known or holds_references(within):
            return value
        made = self.computed(_FILLED_DICT, (value.value(), self.columns[held, ""]), OBJECT)
        return self._session.read(made)

    def set_value(self, name: str, number: Symbol, value: Symbol) -> None:
        item = self.columns[name, ""].type.item
        if value.type != item:
            self.note_at(name, value.type)
            refuse("a list of an attribute has other items", INTERPRET)
        self._layout.changed.add(name)
        self._refuse_shared(name)
        self._become(name, "", "put", number, value)

    def coded(self, code: str, args: tuple[Any, ...], type_: Type) -> Any:
        """What code gives that treats references alike, whatever their numbers are."""
        self.is_own = True
        try:
            return self._session.coded(code, args, type_)
        finally:
            self.is_own = False

    def computed(self, code: str, args: tuple[Any, ...], type_: Type) -> Symbol:
        """What such code gives that cannot fail."""
        operands = tuple(map(self._session.operand, args))
        self.is_own = True
        try:
            (symbol,) = self._session.emit(
                "evaluate", [("v", type_)], code=Lit(code), args=operands
            )
        finally:
            self.is_own = False
        return symbol  # type: ignore[no-any-return]


def _joined_dict(known: DictType, key: Type | None, value: Type) -> DictType:
    return DictType.of(key or known.key, None if known.form == "set" else value, known.form)


def _parsed(name: str) -> tuple[str, str, int]:
    """The class of a cell, its attribute, and how deep in it the cell is."""
    of, _, key = name.partition(".")
    depth = key.count(INSIDE)
    return of, key.removesuffix(INSIDE * depth), depth


def _root(name: str) -> str:
    """The name of the cells that hold, at last, those of a name."""
    of, key, _ = _parsed(name)
    return cells(of, key)


_SAME = "def piece(a):\n    return a"
_OF_PAIRS = "def piece(a, b):\n    return dict(zip(a, b))"
AS_DICT = "def piece(a):\n    return dict(a)"
_FILLED_DICT = "def piece(a, b):\n    return {k: b[n] for k, n in a.items()}"
_FILLED = "def piece(a, b):\n    return [b[k] for k in a]"
_OF_KEYS = "def piece(a):\n    return dict.fromkeys(a)"
