"""Reads a value as data: as an item of a list of the graph, made by nodes or by code."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.symbols import Symbol
from sgc.ir.graph import Lit
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.row_types import OBJECT, MemberType, RecordType, StateType, row_of
from sgc.tracing.snapshots.leaves import TYPES, Data, Items, Parts, Text, item_type, type_of
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_number import AbstractBool, AbstractNumber
from sgc.tracing.values.abstract_record import AbstractRecord
from sgc.tracing.values.abstract_text import AbstractText
from sgc.tracing.values.computing import pieces_of
from sgc.tracing.values.json.abstract_json import AbstractJson
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.recorder import Recorder

MAX_NESTED = 20
MAX_DATA = 20_000
MAX_DISPLAYED = 16  # items of a dict that code makes
_ABSTRACT = frozenset({
    AbstractBool, AbstractJson, AbstractList, AbstractNumber, AbstractObject, AbstractRecord,
})  # fmt: skip
_NO_ITEMS = "def piece():\n    return ()"
_KEYS = frozenset({str, int, bool})


class DataReader:
    """Reads values as data."""

    def __init__(self, session: Recorder) -> None:
        self._session = session
        self.n_data = 0  # values read as data; a value that is read twice counts twice
        self._around: list[int] = []  # ids of the objects that contain the one being read

    def _pieces(self, text: str) -> Parts:
        return tuple(
            self._session.symbol_of(piece) if isinstance(piece, int) else piece
            for piece in pieces_of(str.__str__(text))
        )

    def _data(self, value: Any, n_left: int = MAX_NESTED) -> Data | None:
        """A value as an item of a list in the graph; None if it cannot be one."""
        kind = type(value)
        self.n_data += 1
        if self.n_data > MAX_DATA:
            return None
        if is_member(value):
            code = self._session.record_code(value)
            return Items((), (), MemberType.of(kind.__name__), code) if code else None
        if isinstance(value, str):
            if kind is not str and not isinstance(value, AbstractText):
                return None
            return Text(self._pieces(value)) if has_marker(str.__str__(value)) else Lit(value)
        if value is None or kind in TYPES:
            return Lit(value)
        if kind in _ABSTRACT:
            found: Symbol = value.symbol
            return found
        if is_record(value):
            return self._record(value, n_left - 1) if n_left else None
        if kind is EndedState:
            return self._ended(value, n_left - 1) if n_left else None
        if kind not in (list, dict, tuple) or not n_left:
            return None
        if kind is dict and not (value and all(map(_is_name, value))):
            return self._dict(value, n_left - 1)
        if kind is tuple and not value:  # the op would make a dict of no keys
            return Items((), (), row_of(()), _NO_ITEMS)
        keys = None if kind is list else tuple(value) if kind is dict else ()
        items = [self._data(item, n_left - 1) for item in (value.values() if keys else value)]
        made = tuple(item for item in items if item is not None)
        type_ = item_type(made) if keys is None else None
        return Items(made, keys, type_) if len(made) == len(items) else None

    def _dict(self, value: dict[Any, Any], n_left: int) -> Data | None:
        """A dict, made by code, that is empty or whose keys are not all known texts."""
        if len(value) > MAX_DISPLAYED or not all(type(key) in _KEYS for key in value):
            return None
        parts = [each for pair in value.items() for each in pair]
        found = [self._data(part, n_left) for part in parts]
        made = tuple(part for part in found if part is not None)
        names = [f"a{n}" for n in range(len(parts))]
        pairs = (f"{names[n]}: {names[n + 1]}" for n in range(0, len(parts), 2))
        code = f"def piece({', '.join(names)}):\n    return {{{', '.join(pairs)}}}"
        return Items(made, (), OBJECT, code) if len(made) == len(parts) else None

    def _ended(self, value: EndedState, n_left: int) -> Data | None:
        """An ended stream's variables and return value, as an item of a list in the graph."""
        found = [self._data(part, n_left) for part in value.parts.values()]
        made = tuple(part for part in found if part is not None)
        keys = tuple(value.parts)
        type_ = StateType.of(map(type_of, made), keys)
        return Items(made, keys, type_) if len(made) == len(found) else None

    def _record(self, value: Any, n_left: int) -> Data | None:
        """An object of a class of the user's, if code can make one."""
        parts = parts_of(value)
        if id(value) in self._around:  # objects that contain each other are not data
            return None
        self._around.append(id(value))
        found = takewhile(_is_data, (self._data(item, n_left) for item in parts.values()))
        made = tuple(item for item in found if item is not None)
        self._around.pop()
        code = self._session.record_code(value) if len(made) == len(parts) else ""
        if not code:
            return None
        row = tuple(map(type_of, made))
        type_ = RecordType.of(type(value).__name__, tuple(parts), row, form_of(value))
        return Items(made, tuple(parts), type_, code)


def _is_name(key: Any) -> bool:
    return type(key) is str and not has_marker(key)


def _is_data(found: Data | None) -> bool:
    return found is not None
