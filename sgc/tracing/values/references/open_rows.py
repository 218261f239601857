"""Open rows: rows that have other keys, too, those of a dict out of JSON or of an argument:
`dict(row)`, `{**row, "label": ""}`.

What the source sets by a key is an attribute, as a later key of other rows is; the rest is a value
out of JSON, which comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from sgc.core.session import current_session
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.json.abstract_json import NAMES, AbstractJson
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.references.as_data import data_of
from sgc.tracing.values.references.cells import AS_DICT
from sgc.tracing.values.references.holders import held_by, others_of
from sgc.tracing.values.references.reference import (
    OTHERS,
    class_of,
    count_of,
    heap_of,
    is_open,
    keys_of,
)
from sgc.tracing.values.references.rows import (
    NOTHING_GIVEN,
    Row,
    as_row,
    is_row,
    is_written,
    made_row,
    note_open,
    row_class,
)

_WITHOUT = "def piece(a, b):\n    return {k: v for k, v in a.items() if k != b}"


@note_open
class OpenRow(Row):
    """What open rows are objects of."""

    def _others(self) -> Any:
        return heap_of(self).read(self, OTHERS)

    def _is_set(self, key: Any) -> bool:
        """Whether an attribute has the value of a key, by a decision."""
        if key in keys_of(class_of(self)):
            return True
        return key in self._late() and bool(heap_of(self).read(self, count_of(key)))

    def _has(self, key: Any) -> bool:
        if not is_written(key):
            return key in data_of(self)
        return self._is_set(key) or key in self._others()

    def __getitem__(self, key: Any) -> Any:
        if not is_written(key):
            return data_of(self)[key]
        return self._sure(key) if self._is_set(key) else self._others()[key]

    def get(self, key: Any, default: Any = None) -> Any:
        if not is_written(key):
            return data_of(self).get(key, default)
        return self._sure(key) if self._is_set(key) else self._others().get(key, default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        n_more = others_of(default, "insert")
        if not is_written(key):
            self._refuse("a dict gets a key known only at run time")
        if self._is_set(key):
            return self._sure(key)
        others = self._others()
        if key in others:
            return others[key]
        self.set_key(key, default, n_more)
        return self._sure(key)

    def pop(self, key: Any, default: Any = NOTHING_GIVEN) -> Any:
        if not is_written(key):
            self._refuse("a key known only at run time is removed from a dict")
        others = self._others()
        if self._is_set(key):
            found = self._sure(key)
        elif key in others:
            found = others[key]
        elif default is NOTHING_GIVEN:
            raise KeyError(key)
        else:
            return default
        self._drop(key)
        return found

    def _drop(self, key: str) -> None:
        heap, session = heap_of(self), current_session()
        if key in keys_of(class_of(self)):
            super()._drop(key)
        if key in self._late():
            heap.write(self, count_of(key), 0, 0)
        rest = heap.computed(_WITHOUT, (self._others(), key), OBJECT)
        heap.write(self, OTHERS, session.read(rest), 0)  # type: ignore[union-attr]

    def _keys(self) -> NoReturn:  # type: ignore[override]
        self._refuse("all keys of a dict are needed that has those of another")

    def keys_iterated(self) -> Any:
        return data_of(self).iterated()

    def length(self) -> Any:
        return data_of(self).length()

    def __bool__(self) -> bool:
        return bool(data_of(self))


def is_json(value: Any) -> bool:
    return type(value) in (AbstractJson, AbstractObject)


def copied_json(value: Any) -> Any:
    """`dict(value)` of a value out of JSON, as a row; None where there are none."""
    of = _class_with(value.session.heap, ())
    if of is None:
        return None
    is_dict = value.told() is not None and value.is_a(dict)
    others = value if is_dict else value.session.coded(AS_DICT, (value,), OBJECT)
    return made_row(value.session.heap, of, {}, others)


def _class_with(heap: Any, keys: tuple[str, ...]) -> Any:
    """The class of open rows that are made with these keys; None where there are none."""
    return heap.class_of_rows(row_class(keys, is_open=True)) if heap.has_rows else None


def as_merged(*parts: tuple[Any, ...]) -> Any:
    """`{**a, "k": v}` of a program: parts of one, dicts whose keys it gets, and of two, keys with
    values."""
    if len(parts[0]) == 1 and is_row(parts[0][0]) and is_open(class_of(parts[0][0])):
        return _set_all(parts[0][0].copy(), parts[1:])
    last = max((n for n, part in enumerate(parts) if _is_given(part)), default=-1)
    found = None if last < 0 else _open(parts[: last + 1], parts[last + 1 :])
    if found is not None:
        return found
    made: dict[Any, Any] = {}
    for part in parts:
        made |= {**part[0]} if len(part) == 1 else {part[0]: part[1]}
    return as_row(made)


def _open(first: Sequence[tuple[Any, ...]], rest: Sequence[tuple[Any, ...]]) -> Any:
    """A row with the keys of dicts out of JSON, and those after them; None where there are none."""
    heap = heap_of(None)
    n_own = next((n for n, part in enumerate(rest) if len(part) == 1), len(rest))
    own = tuple(dict.fromkeys(part[0] for part in rest[:n_own]))
    of = _class_with(heap, own)
    others = None if of is None or len(own) < n_own else _merged(first)
    if others is None:
        return None
    given = [id(part[1]) for part in rest[:n_own]]
    made = made_row(heap, of, {part[0]: part[1] for part in rest[:n_own]}, others, given)
    return _set_all(made, rest[n_own:])


def _is_given(part: tuple[Any, ...]) -> bool:
    return len(part) == 1 and is_json(part[0])


def _set_all(row: Any, parts: Sequence[tuple[Any, ...]]) -> Any:
    for part in parts:
        if len(part) == 1:
            row.update(part[0])
        else:
            n_more = held_by(part, 1)  # before another refers to it
            row.set_key(part[0], part[1], n_more)
    return row


def _merged(parts: Sequence[tuple[Any, ...]]) -> Any:
    """What parts have that hold nothing that can be changed, or are out of JSON; None of others."""
    if not all(_is_fixed(part[-1]) for part in parts):
        return None
    for part in parts:
        if len(part) == 1 and not part[0].is_a(dict):
            name = next(name for of, name in NAMES.items() if part[0].is_a(of))
            raise TypeError(f"'{name}' object is not a mapping")
    if len(parts) == 1:
        return parts[0][0]
    names = [f"a{n}" for n in range(len(parts))]
    pairs = [
        f"**{name}" if len(part) == 1 else f"{part[0]!r}: {name}"
        for name, part in zip(names, parts, strict=True)
    ]
    code = f"def piece({', '.join(names)}):\n    return {{{', '.join(pairs)}}}"
    session: Any = current_session()
    return session.read(session.heap.computed(code, [part[-1] for part in parts], OBJECT))


def _is_fixed(value: Any) -> bool:
    return value is None or is_json(value) or isinstance(value, (str, int, float, AbstractNumber))
