"""Copies only those parts of arguments that code may mutate: the other parts stay the caller's own,
so that values that shared them still share them afterwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sgc.runtime.executor.code.classes.copying import check_class, copied_instance
from sgc.runtime.executor.code.fuel import CONTAINERS, MAPPINGS
from sgc.runtime.executor.code.mutation import Way, Ways
from sgc.runtime.executor.code.values import copied, emptied
from sgc.runtime.executor.interface.records import Record, held_by, held_parts, record_of

_SEQUENCES = CONTAINERS - MAPPINGS - {tuple, set, frozenset}


@dataclass(slots=True)
class Along:
    """objects: the objects to copy: those that code may mutate, and those on the ways to them, by
    id; rest: the other values that these objects hold; records: the classes of objects in the
    rest."""

    objects: dict[int, Any] = field(default_factory=dict)
    rest: list[Any] = field(default_factory=list)
    records: dict[int, Record] = field(default_factory=dict)


def mutable_along(value: Any, ways: Ways | None) -> Along | None:
    """The objects on the ways to what code may mutate. None if the whole value must be copied,
    because the code may mutate more, or another part of the value holds one of these objects."""
    along = Along()
    if ways is None or not _split(value, ways, along) or not _are_apart(along):
        return None
    return along


def copied_along(value: Any, along: Along) -> Any:
    """A copy of the objects that `mutable_along` has found; other values in them are shared."""
    for each in along.records.values():
        check_class(each)
    made: dict[int, Any] = {}

    def copy(item: Any) -> Any:
        if id(item) not in along.objects:
            return item
        if id(item) not in made:
            made[id(item)] = copied_one(item)
        return made[id(item)]

    def copied_one(item: Any) -> Any:
        kind = type(item)
        record = record_of(kind)
        if record is not None:
            return copied_instance(item, record, {}, copy)
        if kind is set:
            return copied(item)
        new = emptied(item, kind)
        if kind in MAPPINGS:
            items = [(key, copy(each)) for key, each in item.items()]
            dict.update(new, items) if kind is Counter else new.update(items)
        else:
            new.extend(map(copy, item))
        return new

    return copy(value)


def _split(value: Any, ways: Iterable[Way], along: Along) -> bool:
    """Splits a value into the objects on the ways and the rest; returns False if it cannot."""
    kind = type(value)
    record = record_of(kind)
    is_object = record is not None and not (record.is_tuple or record.is_frozen or record.is_enum)
    if not (is_object or kind in _SEQUENCES or kind in MAPPINGS or kind is set):
        along.rest.append(value)  # it cannot be mutated, but its parts perhaps can
        is_fixed = record is None and kind not in (tuple, frozenset)
        return is_fixed or not any(ways)
    if id(value) in along.objects or (record is not None and record.is_error):
        return False
    along.objects[id(value)] = value
    for step, part in _steps(value, kind):
        further = [way[1:] for way in ways if way and way[0] in (step, None)]
        if not further:
            along.rest.append(part)
        elif not _split(part, further, along):
            return False
    return True


def _steps(value: Any, kind: type) -> Iterator[tuple[str | None, Any]]:
    """The parts of an object, with the attributes' names; None for items."""
    if kind in MAPPINGS:
        yield from ((None, each) for each in value.values())
    elif kind in _SEQUENCES or kind is set:
        yield from ((None, each) for each in value)
    else:
        yield from held_by(value).items()


def _are_apart(along: Along) -> bool:
    """Whether code may get the rest without a copy: it is data, and holds no object on the ways."""
    seen: set[int] = set()
    values = [*along.rest]
    while values:
        value = values.pop()
        kind = type(value)
        if kind in _ATOMS or id(value) in seen:
            continue
        seen.add(id(value))
        record = record_of(kind)
        if id(value) in along.objects or (record is None and _is_odd(value, kind)):
            return False
        if record is not None:
            along.records[id(record)] = record
            values += held_parts(record, value)
        elif kind in CONTAINERS:
            values += [*value.keys(), *value.values()] if kind in MAPPINGS else value
    return True


def _is_odd(value: Any, kind: type) -> bool:
    """Whether reading a value mutates it, or code gets another object in its place."""
    is_odd = kind in (defaultdict, Random) or hasattr(kind, "__next__")
    return is_odd or isinstance(value, str)


_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})
