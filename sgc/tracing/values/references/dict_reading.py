"""What a program reads of the dicts and sets that attributes of objects have."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NoReturn

from sgc.core.places import here
from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import NOTHING, OBJECT, DictType, RefType, holds_references
from sgc.tracing.values.computing import attempted, computed
from sgc.tracing.values.items import argument, type_of
from sgc.tracing.values.json.abstract_json import AbstractJson
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.json.optional import without_none
from sgc.tracing.values.references.cells import AS_DICT
from sgc.tracing.values.references.fields import LOCAL, key_type
from sgc.tracing.values.references.reference import refuse
from sgc.tracing.values.references.unions import arms_of, covering
from sgc.tracing.values.references.views import ReferenceView

_BY_KEYS = "use its keys, values and items; or " + INTERPRET
_ITEM = "def piece(a, b):\n    return a[b]"
_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)
_INDEXED = (types.TEXT, types.INT, types.BOOL)


class ReadDict(AbstractJson):
    """A dict or set that attributes of objects have, as far as it is read."""

    __slots__ = ("name", "number")

    is_live = is_cell = True

    def __init__(self, name: str, number: Symbol, session: Any) -> None:
        self.name, self.number, self.session = name, number, session

    @property
    def whole_type(self) -> DictType:
        found: DictType = self.session.heap.columns[self.name, ""].type.item
        return found

    @property
    def layout_type(self) -> Type:
        """The type of the dict, with those of the lists and dicts that it holds."""
        found: Type = self.session.heap.type_at(self.name)
        return found

    @property
    def symbol(self) -> Symbol:  # type: ignore[override]
        """Says the dict's type; it is no value of the graph, as `now` is."""
        return Symbol("", self.whole_type)

    @property
    def is_set(self) -> bool:
        return self.whole_type.form == "set"

    def value(self) -> Symbol:
        """The value that it has now."""
        found: Symbol = self.session.heap.value_of(self.name, self.number)
        return found

    def now(self) -> AbstractJson:
        """The dict as it is now, as a value of the graph."""
        if holds_references(self.whole_type):
            self._refuse("a dict of objects is used otherwise than by its keys, values and items")
        if self.whole_type.form != "dict":
            self._refuse(f"a {self._python().__name__} of an attribute is used as a whole")
        return AbstractObject(Symbol(self.value().name, OBJECT), self.session)

    def _python(self) -> type:
        return set if self.is_set else dict

    def told(self) -> None:
        """None: it has no schema."""

    def is_a(self, *of: type) -> bool:
        if self.whole_type.form not in ("dict", "set") and {*of} - {dict, list, str, tuple, set}:
            self.needs_type()
        return issubclass(self._python(), of)

    def or_none(self) -> Any:
        return self

    def needs_type(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("a dict or set of an attribute is used otherwise than compiling allows")

    def _refuse(self, what: str) -> NoReturn:
        """Stops the trace; or traces anew without it, if only variables have it."""
        if self.name.startswith(LOCAL):
            self.session.heap.give_up(self.name)
        refuse(what, _BY_KEYS)

    # -- keys -------------------------------------------------------------------------------

    def _key(self, key: Any) -> Any:
        """A key as an argument; its type must be that of the others."""
        key = self._plain(key)
        found = key_type(key)
        known = self.whole_type.key
        if known is not None and covering((known, found)) != known:
            self._refuse("a dict of an attribute has keys of another type")
        return argument(self.session, key)

    def _plain(self, key: Any) -> Any:
        """A key; one out of JSON as a text, by a decision."""
        if not isinstance(key, AbstractJson) or key.is_cell:
            return key
        if key.is_a(str):
            return computed(self.session, "as", key, "str", "", type_=types.TEXT)
        self.needs_type()

    def has(self, key: Any) -> bool:
        """Whether it has a key, by a decision."""
        given = self._key(key)
        if self.is_void:
            return False
        return bool(computed(self.session, "has", self.value(), given))

    __contains__ = has

    @property
    def is_void(self) -> bool:  # type: ignore[override]
        """Whether nothing was ever put into it."""
        return self.whole_type.key is None

    def sure_value(self, key: Any) -> Any:
        """The value of a key that it has."""
        given, type_ = self._key(key), self._value_type
        if type_ == NOTHING:
            return None
        if self.whole_type.key in _INDEXED or isinstance(self.whole_type.key, RefType):
            found = computed(self.session, "item", self.value(), given, type_=type_)
        else:
            made = self.session.heap.computed(_ITEM, (self.value(), given), type_)
            found = self.session.read(made)
        return without_none(found, type_)

    @property
    def _value_type(self) -> Type:
        found = self.whole_type.value
        assert found is not None
        return found

    def __getitem__(self, key: Any) -> Any:
        form = self.whole_type.form
        if form == "set":
            return set()[key]  # type: ignore[index]  # raises Python's own error
        if form != "dict":
            return self._defaulted(key)
        given = self._key(key)
        if self.is_void:
            raise KeyError(key)
        if self.whole_type.key in _INDEXED and not holds_references(self._value_type):
            found = attempted(
                self.session, "item", self.value(), given, type_=self._value_type,
                errors=("KeyError",),
            )  # fmt: skip
            return without_none(found, self._value_type)
        if not self.has(key):
            raise KeyError(key)
        return self.sure_value(key)

    @abstractmethod
    def _defaulted(self, key: Any) -> Any:
        """What a `defaultdict` or `Counter` has, or gets, for a key."""

    def get(self, key: Any, default: Any = None) -> Any:
        if self.is_set:
            self.needs_type()
        if self.is_void:
            self._key(key)
            return default
        kind = None if default is None else type_of(default)
        if kind in _SCALARS and kind == self._value_type and self.whole_type.key == types.TEXT:
            given = self._key(key)
            return computed(self.session, "get", self.value(), given, default, type_=kind)
        return self.sure_value(key) if self.has(key) else default

    # -- views ------------------------------------------------------------------------------

    def _view(self, part: str) -> ReferenceView:
        if self.is_set:
            self._refuse("the order of a set of an attribute is seen: sorted(xs) has one")
        return ReferenceView(self, part)

    def keys(self) -> Any:
        return self._view("keys")

    def values(self) -> Any:
        return self._view("values")

    def items(self) -> Any:
        return self._view("items")

    def as_list(self) -> Any:
        """The keys."""
        return self._view("keys")

    def in_any_order(self, is_sum: bool = False) -> Any:
        """The keys, or the items of a set, for what does not see their order."""
        key = self.whole_type.key
        if is_sum and self.is_set and key is not None and types.FLOAT in arms_of(key):
            self._refuse("the order of a set of an attribute may be seen in a sum")
        return [] if self.is_void else ReferenceView(self, "keys").now()

    def iterated(self) -> Any:
        return self._view("keys").iterated()

    def __iter__(self) -> Iterator[Any]:
        return self._view("keys").begun(sys._getframe(1))

    def length(self) -> Any:
        return computed(self.session, "len", self.value())

    n_items = length

    def __bool__(self) -> bool:
        return bool(computed(self.session, "truth", self.value()))

    # -- as a whole -------------------------------------------------------------------------

    def copied(self) -> Any:
        """`dict(self)`, which is the program's own."""
        if self.is_set:
            self.needs_type()
        if self.whole_type.form == "dict" and not holds_references(self.whole_type):
            return self.session.coded(AS_DICT, (self.now(),), OBJECT)
        return self.session.heap.copied(self, f"{here()}:copied")

    def copy(self) -> Any:
        return self.copied() if self.whole_type.form == "dict" else self.needs_type()

    def whole(self) -> Any:
        """The dict as it is now, with what the lists and dicts in it are now."""
        return self.session.heap.filled_dict(self.name, self)

    def _compared(self, fn: str, other: object, otherwise: bool) -> Any:
        if isinstance(other, ReadDict):
            if {self.whole_type.form, other.whole_type.form} != {"dict"}:
                self.needs_type()
            return computed(self.session, fn, self.now(), other.now())
        return super()._compared(fn, other, otherwise)

    def __str__(self) -> str:
        return str(self.now())

    def __repr__(self) -> str:
        return repr(self.now())

    def __format__(self, spec: str) -> str:
        return format(self.now(), spec)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.needs_type()

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: '{self._python().__name__}'")
