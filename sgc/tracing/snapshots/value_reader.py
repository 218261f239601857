"""Reads one value: as part of the whole, and as a leaf where another value can be put."""

from __future__ import annotations

import types as pytypes
from abc import abstractmethod
from collections import defaultdict
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Any

from sgc.core.markers import has_marker
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.tracing.code.frames import (
    Opaque,
)
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.row_types import (
    NOTHING,
    OBJECT,
    is_unchangeable,
)
from sgc.tracing.snapshots.data_reader import DataReader
from sgc.tracing.snapshots.leaves import (
    TYPES,
    Items,
    Leaf,
    Parts,
    Place,
)
from sgc.tracing.snapshots.objects import (
    CONSTANTS,
)
from sgc.tracing.snapshots.snapshot import Part, Variable
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_number import AbstractBool, AbstractNumber
from sgc.tracing.values.abstract_text import AbstractText
from sgc.tracing.values.computing import pieces_of
from sgc.tracing.values.items import type_of as type_of_item
from sgc.tracing.values.json.abstract_json import AbstractJson
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.live.abstract_live import AbstractLive
from sgc.tracing.values.live.outside import told
from sgc.tracing.values.recorder import Recorder

if TYPE_CHECKING:
    from sgc.lang.state import ProgramState

MAX_VALUES = 20_000
_RESERVED = Leaf(None, (), "", (0, 0), (0, 0))
_LEAVES = frozenset({
    str, int, float, bool, type(None), AbstractText, AbstractNumber, AbstractBool,
})  # fmt: skip
_SAME_EVERYWHERE = (
    type, pytypes.ModuleType, pytypes.MethodDescriptorType, pytypes.WrapperDescriptorType,
)  # fmt: skip
_JSONS = frozenset({AbstractJson, AbstractObject})


class ValueReader(DataReader):
    """Reads a value, and keeps what was read so far; `object_reader.py` reads an object's parts."""

    def __init__(self, session: Recorder) -> None:
        super().__init__(session)
        self._tokens: list[object] = []
        self._slots: list[Symbol] = []
        self._seen: dict[int, tuple[int, ...]] = {}
        self._n_seen: dict[int, int] = {}  # the number of objects, by their outermost list
        self._n_leaves: dict[int, int] = {}  # the number of leaves, by their outermost list
        self._keep: list[Any] = []
        self._known: list[Any] = []
        self.states: list[ProgramState] = []
        self._names: list[dict[str | None, Part]] = []
        self._starts: set[str] = set()
        self._leaves: list[Leaf] = []
        self.places: list[list[Place]] = []  # for each leaf, all its places
        self._lists: dict[int, int] = {}  # the numbers of lists that are leaves, by id
        self._n_inside = 0  # how many lists are being read, each inside another
        self._outermost: list[int] = []  # the leaves of lists that are inside no other
        # For each outermost list, the changeable objects inside it that are also elsewhere.
        self.shared: defaultdict[int, list[Any]] = defaultdict(list)
        self._variables: list[Variable] = []
        self._viewed: list[Symbol] = []  # dicts whose views were read

    @abstractmethod
    def _object(self, value: Any) -> None:
        """Reads an object that was not read before."""

    @abstractmethod
    def _class(self, kind: type) -> None:
        """Reads a class that the program has made."""

    def _value(self, value: Any, holder: Any = None, key: Any = None) -> None:
        """Reads a value. holder, key: the value's place, if another value can be put there."""
        if len(self._tokens) > MAX_VALUES:
            raise Opaque
        kind = type(value)
        if holder is not None and kind in _LEAVES and not _is_unset(value, holder):
            self._leaf(value, Place(holder, key))
        elif kind is str or kind is AbstractText:
            self._text(value)
        elif isinstance(value, Symbol):
            self._tokens.append("%")
            self._slots.append(value)
        elif isinstance(value, str) and not isinstance(value, Enum):
            self._text(value)
        elif kind in CONSTANTS or isinstance(value, Enum):
            self._tokens.append((kind, value, repr(value) if kind is float else ""))
        elif kind is AbstractNumber or kind is AbstractBool:
            self._tokens.append(kind)
            self._value(value.symbol)
        elif isinstance(value, _SAME_EVERYWHERE):
            self._identity(value)
            if isinstance(value, type) and id(value) not in self._seen:
                self._class(value)
        elif value is self._session:
            self._tokens.append("session")
        elif id(value) in self._seen:
            self._again(value, Place(holder, key))
        elif kind is AbstractLive:
            self._live(value, holder, key)
        elif self._session.sites.is_live and (of := told(self._session, value)) is not None:
            self._tokens.append(of)  # by its place in the module: no run changes it
        elif holder is not None and kind in _JSONS:
            self._json(value, Place(holder, key))
        elif kind is AbstractRandom or kind is Random:
            self._random(value)
        else:
            self._seen[id(value)] = self._number()
            self._keep.append(value)
            is_own = kind is not AbstractList or self._session.is_made(value.symbol)
            self._view(value)
            if not is_own:  # a list that the program may change merges only with such a list
                self._tokens.append("of others")
            if holder is not None and (kind is list or kind is AbstractList):
                self._list(value, Place(holder, key), is_own)
            else:
                self._object(value)

    @property
    def n_tokens(self) -> int:
        """How many parts of values were read."""
        return len(self._tokens)

    @property
    def _inside(self) -> int:
        """The index of the outermost list that is being read; -1 outside of lists."""
        return len(self._outermost) - 1 if self._n_inside else -1

    def _number(self) -> tuple[int, ...]:
        """A number for an object; objects inside a list do not affect those after the list."""
        inside = self._inside
        self._n_seen[inside] = self._n_seen.get(inside, -1) + 1
        return (inside, self._n_seen[inside])

    def _leaf_number(self) -> tuple[int, ...]:
        """A number for a leaf; leaves inside a list do not affect those after the list."""
        inside = self._inside
        self._n_leaves[inside] = self._n_leaves.get(inside, -1) + 1
        return (inside, self._n_leaves[inside], -1)

    def _again(self, value: Any, place: Place) -> None:
        """Reads an object that was already read in another place."""
        number = self._seen[id(value)]
        self._tokens.append(("again", number))
        if id(value) in self._lists:
            self.places[self._lists[id(value)]].append(place)
        inside = self._inside
        if number[0] != inside and not is_unchangeable(type_of_item(value)):
            for n in {number[0], inside} - {-1}:
                self.shared[self._outermost[n]].append(value)

    def _live(self, value: AbstractLive, holder: Any, key: Any) -> None:
        """Reads a live object as a leaf, by its symbol: its parts are not in the graph."""
        if holder is not None:
            self._leaf_number()
        n_tokens, n_slots = len(self._tokens), len(self._slots)
        self._tokens += [AbstractLive, value.kind]
        self._value(value.symbol)
        if holder is None:
            return
        place = Place(holder, key)
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        self._leaves.append(Leaf(types.LIVE, (value.symbol,), place.label, tokens, slots))
        self.places.append([place])

    def _leaf(self, value: Any, place: Place) -> None:
        """Reads a value that may be widened, as part of the whole and as a leaf."""
        n_tokens, n_slots = len(self._tokens), len(self._slots)
        self._leaf_number()
        self._value(value)
        parts: Parts
        if isinstance(value, str):
            type_, parts = TYPES[str], self._pieces(value)
        elif isinstance(value, AbstractNumber):
            type_, parts = value.symbol.type, (value.symbol,)
        elif value is None:
            type_, parts = NOTHING, (None,)
        else:
            type_, parts = TYPES[type(value)], (value,)
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        self._leaves.append(Leaf(type_, parts, place.label, tokens, slots))
        self.places.append([place])

    def _json(self, value: Any, place: Place) -> None:
        """Reads a value out of JSON that may be widened. It takes the number of a leaf, so that a
        None in its place would change no other number.
        """
        self._seen[id(value)] = self._leaf_number()
        self._keep.append(value)
        self._lists[id(value)] = len(self._leaves)
        self._view(value)
        n_tokens, n_slots = len(self._tokens), len(self._slots)
        self._tokens.append(type(value))
        self._value(value.symbol)
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        is_own = self._session.is_given(value.symbol)
        leaf = Leaf(value.symbol.type, (value.symbol,), place.label, tokens, slots, is_own=is_own)
        self._leaves.append(leaf)
        self.places.append([place])

    def _random(self, value: Random) -> None:
        """Reads a generator of random numbers. If the program has made the generator, paths that
        have drawn different numbers may merge; the generator's state becomes a value of the graph.
        """
        self._seen[id(value)] = self._leaf_number()
        self._keep.append(value)
        if isinstance(value, AbstractRandom):
            self._tokens.append(AbstractRandom)
            self._value(value.symbol)
            return
        n_tokens, n_slots = len(self._tokens), len(self._slots)
        self._tokens.append((Random, value.getstate()))
        made_at = self._session.events.seeded_at(value)
        self._leaves.append(
            Leaf(
                OBJECT, (), made_at, (n_tokens, n_tokens + 1), (n_slots, n_slots),
                shape=(self._tokens[-1],),
            )
        )  # fmt: skip
        self.places.append([Place(value if made_at else None, made_at)])

    def _view(self, value: Any) -> None:
        if isinstance(value, AbstractList) and self._session.view_state(value.symbol):
            self._tokens.append(self._session.view_state(value.symbol))
            found = self._session.view_of(value.symbol)
            if found is not None:
                self._tokens.append(found[1])
                self._value(found[0])
                self._viewed.append(found[0])

    def _list(self, value: Any, place: Place, is_own: bool) -> None:
        """Reads a list that may be widened: a Python list with its items, or an abstract one."""
        number, n_tokens, n_slots = len(self._leaves), len(self._tokens), len(self._slots)
        self._lists[id(value)] = number
        self._leaves.append(_RESERVED)
        self.places.append([place])
        data: Items | None = None
        if type(value) is list:
            if not self._n_inside:
                self._outermost.append(number)
            self._n_inside += 1
            self._object(value)
            self._n_inside -= 1
            found = self._data(value)
            data = found if isinstance(found, Items) else None
            type_ = types.list_of(data.type) if data is not None and data.type is not None else None
        else:
            self._tokens.append(AbstractList)
            self._value(value.symbol)
            type_ = value.symbol.type
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        shape, symbols = tuple(self._tokens[n_tokens:]), tuple(self._slots[n_slots:])
        if type(value) is list and data is None:
            symbols = ()  # its items may be widened, but never the list
        self._leaves[number] = Leaf(
            type_, symbols, place.label, tokens, slots, is_list=True, shape=shape, data=data,
            is_own=is_own,
        )  # fmt: skip

    def _start(self, symbol: Symbol) -> None:
        """Reads the symbol where something still open began; it cannot become a parameter."""
        self._tokens.append(("start", symbol.name))
        self._starts.add(symbol.name)

    def _identity(self, value: Any) -> None:
        self._tokens.append(("is", id(value)))
        self._known.append(value)

    def _text(self, text: str) -> None:
        if type(text) is not str and not self._session.is_abstract(text):
            raise Opaque  # a user's class, whose attributes are not read
        plain = str.__str__(text)
        if not has_marker(plain):
            self._tokens.append((str, plain))
            return
        self._tokens.append((type(text), "pieces"))
        for piece in pieces_of(plain):
            if isinstance(piece, str):
                self._tokens.append(piece)
            else:
                self._value(self._session.symbol_of(piece))
        self._tokens.append("end")


def _is_unset(value: Any, holder: Any) -> bool:
    """Whether a value is the None of an unset attribute of one of the tracer's loops, whose code,
    unlike the program's, does not decide whether an abstract value is None."""
    return value is None and type(holder).__module__.startswith("sgc.")
