"""Checks whether code changed values that it may not change, since others hold them."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from sgc.runtime.executor.code.fuel import (
    CONTAINERS,
    MAPPINGS,
    NotAllowed,
    charge,
    current,
    measure,
)
from sgc.runtime.executor.code.values import Memo, copied
from sgc.runtime.executor.interface.records import held_by, record_of


class Changed(NotAllowed):
    """Code changed a value that it may not change."""


def unchanged(value: Any, /) -> Any:
    """A value of the program, written out in code, that nothing in the code may change."""
    charge(4 + (measure(value) >> 2))
    memo: Memo = {}
    copied(value, memo)
    current().unchanged.append(memo)
    return value


def check_unchanged(memos: Iterable[Memo]) -> None:
    """Raises Changed if a container has changed since it was copied."""
    for memo in memos:
        if any(_differs(before, after, memo) for before, after in memo.values()):
            raise Changed(
                "code changes a value that is not its own, or reads a key of a defaultdict that "
                "is not there",
                hint="return the new value as the result, or run it with --interpret",
            )


def _differs(before: Any, after: Any, memo: Memo) -> bool:
    if before is after:
        return False
    ours, theirs = _parts(before), _parts(after)
    if isinstance(before, (set, frozenset)):
        return len(ours) != len(theirs) or _names(ours, memo) != _names(theirs, {})
    return len(ours) != len(theirs) or any(
        not _is_copy(one, other, memo) for one, other in zip(ours, theirs, strict=True)
    )


def _parts(value: Any) -> list[Any]:
    """The contents of a container, in order."""
    kind = type(value)
    if kind in MAPPINGS:
        return [*value.keys(), *value.values()]
    if kind is Random:
        return [repr(value.getstate())]
    record = record_of(kind)
    if record is None:
        return [*value]
    held = held_by(value)
    parts = list(tuple.__iter__(value)) if record.is_tuple else []
    return [*parts, *(value.args if record.is_error else ()), *held.keys(), *held.values()]


def _is_copy(one: Any, other: Any, memo: Memo) -> bool:
    if id(one) in memo:
        return memo[id(one)][1] is other
    if one is other:
        return True
    if isinstance(one, str):
        return isinstance(other, str) and str(one) == str(other)
    if type(one) is not type(other) or _is_kept(one):
        return False
    return _name(one) == _name(other)  # type: ignore[no-any-return]


def _names(items: list[Any], memo: Memo) -> set[Any]:
    """The items of a set, each named by its copy."""
    copies = [memo[id(each)][1] if id(each) in memo else each for each in items]
    return {each if isinstance(each, str) else (type(each), _name(each)) for each in copies}


def _name(item: Any) -> Any:
    """A key that distinguishes an item from others: 0.0 is not -0.0, and nan is nan."""
    return repr(item) if type(item) is float else id(item) if _is_kept(item) else item


def _is_kept(item: Any) -> bool:
    return type(item) in CONTAINERS or record_of(type(item)) is not None
