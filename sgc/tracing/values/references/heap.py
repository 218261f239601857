"""Columns: the attributes of objects that references stand for, as lists of the graph.

Each class has a list for each of its attributes; an object is an index into these. A list that an
attribute has is an object too, with one column, so that two that have it see each other's changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any

from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.types import Type
from sgc.tracing.code.calling import made_by, start_of
from sgc.tracing.kinds.row_types import NOTHING, OBJECT, DictType, OptionalType, RefType, referred
from sgc.tracing.values.computing import computed
from sgc.tracing.values.items import as_data
from sgc.tracing.values.json.optional import known_not_none, without_none
from sgc.tracing.values.references.as_data import data_of
from sgc.tracing.values.references.cells import Cells
from sgc.tracing.values.references.dicts import ReferenceDict
from sgc.tracing.values.references.equality import looked_for
from sgc.tracing.values.references.fields import LOCAL, cells, field_type, fit, is_cell_type, joined
from sgc.tracing.values.references.holders import held_by, look_at_frames
from sgc.tracing.values.references.lists import ReferenceList
from sgc.tracing.values.references.reference import (
    RESERVED,
    Layout,
    begun,
    class_of,
    is_cell_name,
    is_of_rows,
    is_open,
    is_reference,
    keys_of,
    may_refer,
    numbered,
    reference_at,
    refuse,
    settle,
    type_to,
    young_of,
)
from sgc.tracing.values.references.rows import row_class
from sgc.tracing.values.references.views import ReferenceView

# What stands for a list or dict of an attribute, or for a view of one.
CELLS = (ReferenceList, ReferenceDict)
LIVE = (*CELLS, ReferenceView)


def whole_of(value: Any) -> Any:
    """A value that is returned, with what lists of lists and dicts in it hold now."""
    if type(value) in CELLS:
        return data_of(value.whole())
    parts = value.values() if type(value) is dict else value
    if type(value) not in (list, tuple, dict):
        return value
    found = [*map(whole_of, parts)]
    if all(map(is_, found, parts)):
        return value
    return dict(zip(value, found, strict=True)) if type(value) is dict else type(value)(found)


class Heap(Cells):
    """The columns of one run of a trace."""

    def __init__(self, session: Any, layout: Layout) -> None:
        super().__init__(session, layout)
        self.has_refused = False

    def before_refusing(self) -> None:
        """Gives up the cells of a variable into which something cannot be put."""
        if self.putting:
            self.give_up(self.putting)
        self.has_refused = True

    def give_up(self, name: str) -> None:
        if self.class_named(name) is None:
            super().give_up(name)
        elif name not in self._layout.plain:
            self._layout.plain.add(name)
            self._layout.forget()
            self._session.begin_anew("a dict is used as no row can be")

    def begin(self) -> None:
        """Makes the columns, which are empty."""
        for name, fields in self._layout.fields.items():
            for key, type_ in fields.items():
                if name != LOCAL:
                    self._begin(name, key, self.stored(cells(name, key), type_))
                if is_cell_type(type_):
                    self._begin_cells(cells(name, key), type_)

    # -- objects ----------------------------------------------------------------------------

    @property
    def is_used(self) -> bool:
        """Whether objects of the program's classes are references."""
        return self._layout.is_used

    @property
    def has_rows(self) -> bool:
        """Whether dicts are references, too."""
        return self._layout.is_used and self._layout.has_rows

    def fields_of(self, of: type) -> dict[str, Type]:
        return self._layout.fields.get(of.__name__, {})

    def class_named(self, name: str) -> type | None:
        """The class of a name; None if that is of lists or dicts."""
        return self._layout.classes.get(name)

    def looked_for(self, fn: str, items: Any, one: Any) -> Any:
        """`has`, `where` or `n_of` of a list of objects, and an object."""
        return looked_for(fn, items, one)

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
        self.keep_all(made, [*map(id, args), *map(id, named.values())])

    def keep_all(self, made: Any, given: Sequence[int] = ()) -> None:
        """Puts the attributes of a young object into the columns. given: the ids of what its maker
        was given."""
        self._lay_out(class_of(made), young_of(made))
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
        found = {key: field_type(value, cells(name, key)) for key, value in young.items()}
        if not found:
            refuse(f"an object of {name} has no attributes", INTERPRET)
        if RESERVED & found.keys():
            refuse(f"an attribute of {name} has a name that references have", INTERPRET)
        if known and known.keys() != found.keys() and not is_of_rows(of):
            refuse(f"objects of {name} have different attributes", INTERPRET)
        self._note(name, found)

    def _note(self, name: str, found: dict[str, Type]) -> None:
        known = self._layout.fields.get(name, {})
        own = cells(name, next(iter(found))) if name == LOCAL else self.putting
        if own and any(not fit(known.get(key), each) for key, each in found.items()):
            self.give_up(own)
        wider = {key: joined(name, key, known.get(key), each) for key, each in found.items()}
        if wider != {key: known.get(key) for key in wider}:
            self._layout.fields[name] = {**known, **wider}
            self._settle()
            self._session.begin_anew(f"the attributes of {name} have other types")

    @unhooked
    def _put_all(self, made: Any, given: Sequence[int]) -> None:
        of, young = class_of(made), young_of(made)
        name, fields = of.__name__, self.fields_of(of)
        look_at_frames()
        n_held = {key: held_by(young, key) - given.count(id(young[key])) for key in young}
        stored = [
            self._cell(cells(name, key), young[key], n_held[key])
            if is_cell_type(fields[key]) and young[key] is not None
            else as_data(self._session, young[key])
            for key in young
        ]
        number = self._number(name, next(iter(young)), type_to(of))
        for key, value in zip(young, stored, strict=True):
            self._push(name, key, value)
        settle(made, number)

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
    def write(self, reference: Any, key: str, value: Any, n_more: int) -> None:
        name = class_of(reference).__name__
        known = self._layout.fields[name].get(key)
        if known is None:
            refuse(f"the attribute {key} of an object is set after its __init__", INTERPRET)
        self._note(name, {key: field_type(value, cells(name, key))})
        if is_cell_type(self._layout.fields[name][key]) and value is not None:
            value = self._cell(cells(name, key), value, n_more)
        else:
            value = as_data(self._session, value)
        self._become(name, key, "put", numbered(reference), value)

    # -- rows -----------------------------------------------------------------------------------

    def class_of_rows(self, of: type) -> type | None:
        """The class that rows of a form have: it may be that of several forms; None if dicts of
        this form are no rows."""
        name = of.__name__
        while name in self._layout.united:
            name = self._layout.united[name]
        if name in self._layout.plain:
            return None
        return self._layout.classes.setdefault(name, of)

    def unite(self, found: Iterable[Type]) -> None:
        """Traces the program anew with one class of rows for several, or one column for several
        dicts of variables; does nothing for others."""
        names = {each.name for each in found if isinstance(each, RefType)}
        if len(names) == 2 and all(map(is_cell_name, names)):
            self._unite(*sorted(names))
        forms = [self._layout.classes.get(name) for name in names]
        if len(names) < 2 or not all(each is not None and is_of_rows(each) for each in forms):
            return
        of = _common([each for each in forms if each is not None])
        self._layout.classes[of.__name__] = of
        self._layout.united |= dict.fromkeys(names - {of.__name__}, of.__name__)
        self._layout.forget()
        self._session.begin_anew("dicts of several forms are in one place")

    def give_up_rows(self, found: Iterable[Type | None]) -> None:
        """Traces the program anew without the rows that values of these types are or hold."""
        for each in found:
            for name in referred(each):
                of = self._layout.classes.get(name)
                if of is not None and is_of_rows(of):
                    self.give_up(name)

    def no_keys(self) -> Any:
        """An empty dict, as a value out of JSON."""
        return self._session.read(self.computed(_NO_KEYS, (), OBJECT))

    def late_keys(self, name: str) -> tuple[str, ...]:
        """The keys that rows of a class get later."""
        return tuple(self._layout.late.get(name, ()))

    def note_late(self, name: str, key: str, field: str, count: str, value: Any) -> None:
        """Traces the program anew if rows get a key, or values, that it did not know."""
        late = self._layout.late.setdefault(name, {})
        fields = self._layout.fields.setdefault(name, {})
        wider = joined(name, key, late.get(key), field_type(value, cells(name, field)))
        if late.get(key) != wider:
            late[key] = wider
            fields[field] = joined(name, key, fields.get(field), joined(name, key, NOTHING, wider))
            fields[count] = types.INT
            self._settle()
            self._session.begin_anew(f"rows of {name} get another key")

    def read_late(self, reference: Any, key: str, field: str) -> Any:
        """The value of a key that a row has got."""
        name, number = class_of(reference).__name__, numbered(reference)
        held, column = self._layout.late[name][key], self.columns[name, field]
        item = column.type.item
        if isinstance(held, OptionalType) or not isinstance(item, OptionalType):
            return self._read(name, field, number)
        found = computed(self._session, "item", column, number, type_=item)
        return known_not_none(found, item)

    def count(self, reference: Any, counts: Sequence[str]) -> None:
        """Says that a row has the first of its late keys now."""
        name, number = class_of(reference).__name__, numbered(reference)
        columns = [self.columns[name, each] for each in counts]
        names = [f"c{n}" for n in range(len(columns))]
        latest = ", ".join(["0", *(f"{each}[n]" for each in names)])
        code = f"def piece(n, {', '.join(names)}):\n    return c0[n] or 1 + max([{latest}])"
        made = self.computed(code, (number, *columns), types.INT)
        self._become(name, counts[0], "put", number, made)

    def copied_object(self, reference: Any) -> Any:
        """A new object with what another has."""
        of, number = class_of(reference), numbered(reference)
        name, fields = of.__name__, self.fields_of(of)
        held = [self.held_at(self.columns[name, key], number) for key in fields]
        made = self._number(name, next(iter(fields)), type_to(of))
        for key, value in zip(fields, held, strict=True):
            self._push(name, key, value)
        return self.at(made)

    # -- which objects they are -----------------------------------------------------------------

    def at(self, number: Symbol) -> Any:
        """What a number stands for."""
        assert isinstance(number.type, RefType)
        name = number.type.name
        if is_cell_name(name):
            is_dict = isinstance(self.type_at(name), DictType)
            return (ReferenceDict if is_dict else ReferenceList)(name, number, self._session)
        return reference_at(self._layout.classes[name], number)

    def are_same(self, one: Any, other: Any) -> Any:
        """Whether two are the same object."""
        if not is_reference(other) or type(one) is not type(other):
            return NotImplemented if not is_reference(other) else False
        first, second = numbered(one), numbered(other)
        return True if first == second else computed(self._session, "eq", first, second)


_NO_KEYS = "def piece():\n    return {}"


def _common(forms: Sequence[type]) -> type:
    """The class of rows with the keys that all these begin with."""
    keys = [keys_of(each) for each in forms]
    n_least = min(map(len, keys))
    n = next((n for n in range(n_least) if len({each[n] for each in keys}) > 1), n_least)
    return row_class(keys[0][:n], any(map(is_open, forms)))
