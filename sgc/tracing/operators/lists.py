"""Methods of lists that compare items.

Python calls the left item's comparison. That item may be a text of a user's class (a `str` enum),
which does not handle abstract values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sgc.core.session import current_session
from sgc.tracing.operators.live.patterns import sequence_parts
from sgc.tracing.operators.texts import compared
from sgc.tracing.values.abstract import AbstractJson, AbstractList, AbstractObject, is_abstract
from sgc.tracing.values.abstract_record import AbstractRecord
from sgc.tracing.values.computing import computed
from sgc.tracing.values.json.dict_views import part_of
from sgc.tracing.values.live.abstract_live import AbstractLive

LISTS = (list, tuple, deque)
_Key = Callable[[Any], Any]


def comparing_method(function: Any) -> Any:
    """A replacement that handles abstract items, for a bound method of a list, tuple or deque that
    compares items; for another method, the method itself.
    """
    made = _METHODS.get(function.__name__)
    return function if made is None else made(function.__self__, function)


def parts(value: Any, before: int, after: int | None = None) -> tuple[list[Any], ...]:
    """The parts of a sequence that a pattern of this many items matches, in a tuple; an empty tuple
    if it does not match. after: the number of items after a starred part, if the pattern has one.
    """
    if type(value) is AbstractLive:
        return sequence_parts(value, before, after)
    if type(value) is AbstractRecord:
        if not value.is_a(tuple):
            return ()
        value = tuple(value.parts())
    if isinstance(value, AbstractJson):
        if not _is_sequence(value):
            return ()
    elif not _is_row(value):
        return ()
    is_list = isinstance(value, AbstractList)
    n = computed(value.session, "len", value) if is_list else len(value)
    least = before + (after or 0)
    if not (n == least if after is None else n >= least):
        return ()
    found = [_item_of(value, index) for index in range(before)]
    if after is not None:
        end = -after or None
        found.append(value[before:end] if is_abstract(value) else [*value[before:end]])
        found += [_item_of(value, index - after) for index in range(after)]
    return (found,)


def _is_row(value: Any) -> bool:
    if isinstance(value, AbstractList):
        return not part_of(value)
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _is_sequence(value: AbstractJson) -> bool:
    """Whether a value is a list, or a tuple that code has made, by a decision."""
    if not isinstance(value, AbstractObject):
        return value.is_a(list)
    return bool(computed(value.session, "is_a", value, "list", "tuple"))


def _item_of(value: Any, index: int) -> Any:
    return value.sure_item(index) if isinstance(value, AbstractList) else value[index]


def ordered(items: Iterable[Any], key: _Key | None, reverse: Any) -> list[Any]:
    """The sorted items; `list.sort` and `sorted` call it."""
    found = list(items)  # raises Python's own error
    keys = found if key is None else [*map(key, found)]
    if _is_seen(keys):
        keys = [*map(_compared, keys)]
    order = sorted(range(len(found)), key=keys.__getitem__, reverse=reverse)
    return [found[n] for n in order]


def keyed(key: _Key | None) -> _Key:
    """A key function with which `min` and `max` compare abstract values."""
    return _compared if key is None else lambda item: _compared(key(item))


def _compared(value: Any) -> Any:
    kind = type(value)
    return kind(map(_compared, value)) if kind in _NESTED else compared(value)


def _is_seen(items: Iterable[Any]) -> bool:
    return any(is_abstract(item) or (type(item) in _NESTED and _is_seen(item)) for item in items)


_NESTED = (tuple, list)


def _count(items: Any, python: Any) -> Any:
    def count(value: Any) -> Any:
        if not _is_seen([value, *items]):
            return python(value)
        return [*map(_compared, items)].count(_compared(value))

    return count


def _index(items: Any, python: Any) -> Any:
    def index(value: Any, *bounds: Any) -> Any:
        if not _is_seen([value, *items]):
            return python(value, *bounds)
        return type(items)(map(_compared, items)).index(_compared(value), *bounds)

    return index


def _remove(items: Any, python: Any) -> Any:
    def remove(value: Any) -> None:
        if not _is_seen([value, *items]):
            python(value)
            return
        copied = type(items)(map(_compared, items))
        n = len(copied)
        wanted = _compared(value)
        for at in range(n):
            if copied[at] == wanted:
                del items[at]
                return
        type(items)().remove(value)  # raises Python's own error for a missing item

    return remove


def _sort(items: Any, python: Any) -> Any:
    def sort(*, key: _Key | None = None, reverse: Any = False) -> None:
        items[:] = ordered(items, key, reverse)

    return sort


def _append(items: Any, python: Any) -> Any:
    session: Any = current_session()
    return lambda item: python(session.listed(item))


_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "append": _append,
    "count": _count,
    "index": _index,
    "remove": _remove,
    "sort": _sort,
}
