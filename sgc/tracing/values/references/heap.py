"""Columns: the attributes of objects that references stand for, as lists of the graph.

Each class has a list for each of its attributes; an object is an index into these. A list that an
attribute has is an object too, with one column, so that two that have it see each other's changes.
"""

from __future__ import annotations

from typing import Any

from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.graph import Lit, Ref
from sgc.ir.types import Type
from sgc.tracing.code.calling import made_by, start_of
from sgc.tracing.kinds.row_types import (
    NOTHING,
    RefType,
)
from sgc.tracing.values.computing import computed
from sgc.tracing.values.json.abstract_json import without_none
from sgc.tracing.values.references.fields import (
    N_OF_SET,
    cells,
    field_type,
    held_by,
    is_held,
    joined,
)
from sgc.tracing.values.references.lists import ReferenceList
from sgc.tracing.values.references.reference import (
    RESERVED,
    Layout,
    begun,
    class_of,
    is_reference,
    may_refer,
    numbered,
    reference_at,
    refuse,
    settle,
    type_to,
    young_of,
)

_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


class Heap:
    """The columns of one run of a trace."""

    def __init__(self, session: Any, layout: Layout) -> None:
        self._session, self._layout = session, layout
        self.columns: dict[tuple[str, str], Symbol] = {}
        self.has_refused = False
        self.is_own = False  # what is done now does not look at numbers

    def begin(self) -> None:
        """Makes the columns, which are empty."""
        for name, fields in self._layout.fields.items():
            for key, type_ in fields.items():
                self._begin(name, key, self._stored(name, key, type_))
                if type_.item is not None:
                    self._begin(cells(name, key), "", type_)

    def _begin(self, name: str, key: str, type_: Type) -> None:
        (symbol,) = self._session.emit("list", [("v", types.list_of(type_))], items=())
        self.columns[name, key] = symbol

    def _stored(self, name: str, key: str, type_: Type) -> Type:
        return type_ if type_.item is None else RefType.to(cells(name, key))

    # -- objects ----------------------------------------------------------------------------

    def fields_of(self, of: type) -> dict[str, Type]:
        return self._layout.fields.get(of.__name__, {})

    def making(self, of: type, entered: Any) -> Any:
        """What makes an object of a class, as a reference; None if Python is to make it."""
        start = start_of(of) if may_refer(of) else None
        if start is None:
            return None
        if not self._layout.is_used:
            self._layout.met.setdefault(of.__name__, of)
            return None
        if self._layout.classes.get(of.__name__) is not of:
            return None
        is_users_own = start.__code__.co_filename.endswith(".py")
        return made_by(of, entered(start) if is_users_own else start, begun, self._grown)

    def _grown(self, made: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Called when an object's `__init__` has ended."""
        self.forget_ended()
        self._lay_out(class_of(made), young_of(made))
        given = [*map(id, args), *map(id, named.values())]
        self._put_all(made, given)

    def forget_ended(self) -> None:
        """Drops what a function that has ended still refers to."""
        if self._session.loops is not None:
            self._session.loops.forget_ended()

    def keep(self, young: Any) -> None:
        refuse(
            f"an object of {class_of(young).__name__} is used before its __init__ has ended",
            INTERPRET,
        )

    @unhooked
    def _lay_out(self, of: type, young: dict[str, Any]) -> None:
        """Traces the program anew if the attributes, or their types, are others than it knew."""
        name, known = of.__name__, self.fields_of(of)
        found = {key: field_type(value) for key, value in young.items()}
        if not found:
            refuse(f"an object of {name} has no attributes", INTERPRET)
        if RESERVED & found.keys():
            refuse(f"an attribute of {name} has a name that references have", INTERPRET)
        if known and known.keys() != found.keys():
            refuse(f"objects of {name} have different attributes", INTERPRET)
        self._note(name, found)

    def _note(self, name: str, found: dict[str, Type]) -> None:
        known = self._layout.fields.get(name, {})
        wider = {key: joined(name, key, known.get(key), each) for key, each in found.items()}
        if wider != {key: known.get(key) for key in wider}:
            self._layout.fields[name] = {**known, **wider}
            self._session.begin_anew(f"the attributes of {name} have other types")

    @unhooked
    def _put_all(self, made: Any, given: list[int]) -> None:
        of, young = class_of(made), young_of(made)
        name, fields = of.__name__, self.fields_of(of)
        n_held = {key: held_by(young, key) - given.count(id(young[key])) for key in young}
        stored = [
            value if fields[key].item is None else self._cell(name, key, value, n_held[key])
            for key, value in young.items()
        ]
        number = self._number(name, next(iter(young)), type_to(of))
        for key, value in zip(young, stored, strict=True):
            self._push(name, key, value)
        settle(made, number)

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

    # -- attributes -------------------------------------------------------------------------

    @unhooked
    def read(self, reference: Any, key: str) -> Any:
        return self._read(class_of(reference).__name__, key, numbered(reference))

    def _read(self, name: str, key: str, number: Symbol) -> Any:
        column = self.columns[name, key]
        type_ = column.type.item
        assert type_ is not None
        if type_ == NOTHING:
            return None
        found = computed(self._session, "item", column, number, type_=type_)
        return without_none(found, type_)

    @unhooked
    def write(self, reference: Any, key: str, value: Any, n_held: int) -> None:
        name = class_of(reference).__name__
        known = self._layout.fields[name].get(key)
        if known is None:
            refuse(f"the attribute {key} of an object is set after its __init__", INTERPRET)
        self._note(name, {key: field_type(value)})
        if self._layout.fields[name][key].item is not None:
            value = self._cell(name, key, value, n_held - N_OF_SET)
        self._become(name, key, "put", numbered(reference), value)

    # -- lists that attributes have -----------------------------------------------------------

    def _cell(self, name: str, key: str, value: Any, n_more: int) -> Symbol:
        """The number of a list that an attribute gets. n_more: how many others refer to it."""
        name = cells(name, key)
        if type(value) is ReferenceList:
            if value.name != name:
                refuse("two attributes have the same list", "give each a copy; or " + INTERPRET)
            return value.number
        is_own = type(value) is list or self._session.is_made(value.symbol)
        if not is_own or is_held(value, n_more):
            refuse(
                f"the list that the attribute {key} is set to is held elsewhere, too",
                hint="give it a copy, list(xs); or " + INTERPRET,
            )
        number = self._number(name, "", RefType.to(name))
        self._push(name, "", value)
        return number

    def value_of(self, name: str, number: Symbol) -> Symbol:
        """The value that a list has now."""
        column = self.columns[name, ""]
        assert column.type.item is not None
        (symbol,) = self._session.emit(
            "compute", [("v", column.type.item)], fn=Lit("item"),
            args=(Ref(column.name), Ref(number.name)),
        )  # fmt: skip
        return symbol  # type: ignore[no-any-return]

    def set_value(self, name: str, number: Symbol, value: Symbol) -> None:
        item = self.columns[name, ""].type.item
        if value.type != item:
            class_name, key = name.split(".")
            self._note(class_name, {key: value.type})
            refuse("a list of an attribute has other items", INTERPRET)
        self._become(name, "", "put", number, value)

    def coded(self, code: str, args: tuple[Any, ...], type_: Type) -> Any:
        """What code gives that treats references alike, whatever their numbers are."""
        self.is_own = True
        try:
            return self._session.coded(code, args, type_)
        finally:
            self.is_own = False

    # -- which objects they are -----------------------------------------------------------------

    def at(self, number: Symbol) -> Any:
        """What a number stands for."""
        assert isinstance(number.type, RefType)
        name = number.type.name
        if "." in name:
            return ReferenceList(name, number, self._session)
        return reference_at(self._layout.classes[name], number)

    def are_same(self, one: Any, other: Any) -> Any:
        """Whether two are the same object."""
        if not is_reference(other) or type(one) is not type(other):
            return NotImplemented if not is_reference(other) else False
        first, second = numbered(one), numbered(other)
        return True if first == second else computed(self._session, "eq", first, second)
