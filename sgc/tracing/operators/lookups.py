"""Look-ups by abstract keys in known dicts, sets, lists and texts.

If all values are data of one type, a look-up is one node of the graph; else each key is a path.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from types import MappingProxyType
from typing import Any

from sgc.core.session import Stream, current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.ir.types import INT, TEXT, Kind
from sgc.tracing.kinds.row_types import OBJECT, joined_item
from sgc.tracing.kinds.text_types import domain
from sgc.tracing.operators.texts import compared, is_plain, seeing, text
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractNumber,
    AbstractText,
    is_abstract,
)
from sgc.tracing.values.abstract_text import sliced
from sgc.tracing.values.computing import attempted, computed, symbol_of
from sgc.tracing.values.items import argument, type_of
from sgc.tracing.values.json.dict_views import like, part_of
from sgc.tracing.values.live.abstract_live import AbstractLive

MAX_WAYS = 64  # keys or items, each of which takes a decision
_MAPS = (dict,)
ORDERED = (MappingProxyType, OrderedDict)
_SETS = (set, frozenset)
_ROWS = (list, tuple)


def item(whole: Any, key: Any) -> Any:
    """`whole[key]`."""
    if type(key) is AbstractLive and type(whole) is dict and _is_record(whole):
        key = _text_of(key, "{}[a]")
    elif type(key) is AbstractLive and type(whole) is not AbstractLive:
        key = key.as_(TEXT if isinstance(whole, (Stream, *_MAPS)) else INT)
    if isinstance(whole, enum.EnumType):
        whole = whole if type(key) is str and not is_abstract(text(key)) else {**whole.__members__}
    whole, key = plain_dict(whole), text(key)
    kind = type(whole)
    if kind is AbstractList and part_of(whole):
        whole = like(whole)
    if isinstance(key, AbstractJson) and kind in _MAPS and _is_record(whole):
        key = _text_of(key, "{}[a]")
    if not _is_looked_up(key):
        return whole[key]
    if kind in _MAPS and _is_plain(whole):
        return _value(whole, key)
    if kind in _ROWS and _is_index(key):
        return _at(whole, key)
    if kind is str and _is_index(key):
        return seeing(whole, key.session)[key]
    return whole[key]


def member_of(kind: Any) -> Callable[..., Any] | None:
    """`kind(value)` of an enumeration, by a decision for each member; None for another class."""
    is_enumeration = isinstance(kind, enum.EnumType) and not issubclass(kind, enum.Flag)
    if not is_enumeration:
        return None
    members: dict[str, Any] = {**kind.__members__}

    def call(*args: Any, **kwargs: Any) -> Any:
        value = text(args[0]) if len(args) == 1 and not kwargs else None
        if not is_abstract(value) or not members:
            return kind(*args, **kwargs)
        _refuse_many(members)
        for each in members.values():
            if type(each._value_) in _KEYS and compared(each._value_) == value:
                return each
        return _missing(kind, value)

    return call


def _missing(kind: Any, value: Any) -> Any:
    """The result of an enumeration's `_missing_`, for a value that no member has."""
    own, session = kind._missing_.__func__, current_session()
    assert session is not None
    found = None
    if own is not enum.Enum._missing_.__func__:  # type: ignore[attr-defined]
        found = session.entered(own)(kind, value)
    if isinstance(found, kind):
        return found
    if found is None:
        raise ValueError(f"{value!r} is not a valid {kind.__qualname__}")
    raise TypeError(
        f"error in {kind.__name__}._missing_: returned {found!r} instead of None or a valid member"
    )


def sliced_by(whole: Any, start: Any, stop: Any, step: Any) -> Any:
    """`whole[start:stop:step]`; of a known list or text, the ends may be abstract."""
    key = slice(start, stop, step)
    if type(whole) is AbstractList and part_of(whole):
        whole = like(whole)
    ends = (end for end in (start, stop, step) if isinstance(end, AbstractNumber))
    session = next((end.session for end in ends), None)
    if session is None or type(whole) not in (list, str):
        return whole[key]
    if not whole:
        return whole[::1] if step is None else whole[key]
    if isinstance(whole, str):
        return seeing(whole, session)[key]
    given = argument(session, whole)
    return sliced(session, given, key, types.list_of(joined_item(map(type_of, whole))))


def contains(part: Any, whole: Any) -> bool:
    """`part in whole`."""
    part, whole = text(part), text(plain_dict(whole))
    if _is_untyped(part) and _has_texts(whole):
        part = _text_of(part, "a in {}")
        if part is None:
            return False
    if isinstance(part, AbstractText) and is_plain(whole, "__contains__"):
        return seeing(whole, part.session).__contains__(part)
    found = is_key(part, whole)
    if found is not None:
        return found
    if type(whole) in (list, tuple) and (is_abstract(part) or any(map(is_abstract, whole))):
        return compared(part) in [*map(compared, whole)]
    return part in whole


def is_key(key: Any, whole: Any) -> bool | None:
    """`key in whole` for a dict or set; None if Python's own look-up is right."""
    if type(whole) not in (*_MAPS, *_SETS) or not _is_looked_up(key) or not _is_plain(whole):
        return None
    # The order of a set differs between processes.
    keys = [*whole] if type(whole) is dict else sorted(whole, key=repr)
    return bool(computed(key.session, "has", keys, key))


def getting(method: Any) -> Callable[..., Any]:
    """`d.get` of a dict."""
    whole = plain_dict(method.__self__)

    def get(key: Any, default: Any = None) -> Any:
        key = text(key)
        if _is_untyped(key) and _is_record(whole):
            key = _text_of(key, "{}.get(a)")
            if key is None:
                return default
        if not _is_looked_up(key) or not _is_plain(whole):
            return method(key, default)
        type_ = one_type([*whole.values(), default]) if _is_record(whole) else None
        if type_ is not None and isinstance(key, AbstractText):
            return computed(key.session, "get", whole, key, default, type_=type_)
        return _decided(whole, key, lambda: default)

    return get


def plain_dict(whole: Any) -> Any:
    """A plain dict for a read-only view of a dict or an `OrderedDict`; else the value itself."""
    return dict(whole) if type(whole) in ORDERED else whole


def _is_untyped(key: Any) -> bool:
    """Whether a key may or may not be a text."""
    return type(key) is AbstractLive or isinstance(key, AbstractJson)


def _text_of(key: Any, otherwise: str) -> Any:
    """A value of unknown type as a text, by a decision; None if it is no text, and so equals none.

    otherwise: a look-up of `a` in an empty container, which raises Python's error for such a value.
    """
    if type(key) is AbstractLive:
        return key.as_text(otherwise)
    if key.is_a(str):
        return computed(key.session, "as", key, "str", "", type_=types.TEXT)
    key.session.coded(f"def piece(a):\n    return {otherwise}", (key,), OBJECT)
    return None


def _has_texts(whole: Any) -> bool:
    """Whether a container is a dict or set of texts alone."""
    return type(whole) in (*_MAPS, *_SETS) and all(type(key) is str for key in whole)


def _is_looked_up(key: Any) -> bool:
    """Whether a key is abstract, except a text with few options, which is decided instead."""
    if not is_abstract(key) or isinstance(key, AbstractJson):
        return False
    if not isinstance(key, (AbstractText, AbstractNumber)):
        return False
    symbol = symbol_of(key) if isinstance(key, AbstractText) else None
    return symbol is None or domain(symbol, key.session) is None


def _is_index(key: Any) -> bool:
    return isinstance(key, AbstractNumber) and key.python is not float


def _is_plain(keys: Collection[Any]) -> bool:
    """Whether all keys are compared by Python's own types, not by a user's class."""
    return all(type(key) in _KEYS for key in keys)


_KEYS = (str, int, float, bool, type(None), tuple)


def _is_record(whole: dict[Any, Any]) -> bool:
    return bool(whole) and all(type(key) is str for key in whole)


def _value(whole: dict[Any, Any], key: Any) -> Any:
    type_ = one_type([*whole.values()]) if _is_record(whole) and type(key) is not int else None
    if type_ is not None and isinstance(key, AbstractText):
        return attempted(key.session, "item", whole, key, type_=type_, errors=("KeyError",))

    def missing() -> Any:
        raise KeyError(key)

    return _decided(whole, key, missing)


def _decided(whole: dict[Any, Any], key: Any, missing: Callable[[], Any]) -> Any:
    """The value of the key that equals the abstract key, by a decision for each."""
    _refuse_many(whole)
    for each in whole:
        if type(each) is not tuple and compared(each) == key:
            return whole[each]
    return missing()


def _at(items: Sequence[Any], index: Any) -> Any:
    type_ = one_type(items)
    given = [*items] if type_ is not None else [*range(len(items))]
    try:
        found = attempted(
            index.session, "item", given, index, type_=type_ or types.INT, errors=("IndexError",)
        )
    except IndexError as error:
        if type(items) is tuple:
            error.args = (error.args[0].replace("list index", "tuple index"),)
        raise
    return found if type_ is not None else _by_number(items, found)


def picked(items: Any, index: Any) -> Any:
    """`items[index]` for an index that is certainly in range."""
    if isinstance(items, AbstractList):
        return items.sure_item(index)
    if type(index) is int:
        return items[index]
    if type(items) is range:
        return items.start + index * items.step
    if isinstance(items, str):
        return seeing(items, index.session)[index]
    type_ = one_type(items)
    if type_ is None:
        return _by_number(items, index)
    return computed(index.session, "item", [*items], index, type_=type_)


def _by_number(items: Sequence[Any], index: Any) -> Any:
    """The item at an index, by a decision for each."""
    _refuse_many(items)
    ways = iter(items[:-1])
    return next((each for n, each in enumerate(ways) if index == n), items[-1])


def _refuse_many(ways: Collection[Any]) -> None:
    if len(ways) > MAX_WAYS:
        stop(
            f"a value known only at run time is looked up among {len(ways)} that are of several "
            "types, or no data",
            hint="keep texts, numbers or bools of one type in what you look it up in; or "
            + INTERPRET,
        )


def one_type(values: Sequence[Any]) -> types.Type | None:
    """The type of all values, if they have the same type and the graph can hold it."""
    found = {type_of(value) for value in values if _is_data(value)}
    kinds = {each.kind for each in found}
    if len(values) == 0 or not all(map(_is_data, values)) or Kind.JSON in kinds:
        return None
    if kinds <= {Kind.TEXT, Kind.CHOICE}:
        return types.TEXT
    return found.pop() if len(found) == 1 else None


def _is_data(value: Any) -> bool:
    return type(value) in (str, int, float, bool) or is_abstract(value)
