"""Texts inside plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sgc.core.places import here
from sgc.errors import UsageError


def texts_in(value: Any) -> Iterator[str]:
    """The texts in a value: itself, or those in sequences, sets and mappings, keys and values."""
    seen: dict[int, Any] = {}  # holds the objects, so that no id is reused
    found = [value]
    while found:
        item = found.pop()
        if isinstance(item, str):
            yield item
        elif id(item) not in seen:
            seen[id(item)] = item
            found.extend(_inside(item))


def _inside(item: Any) -> Iterable[Any]:
    if isinstance(item, Mapping):
        return (*item.keys(), *item.values())
    return item if isinstance(item, (list, tuple, set, frozenset)) else ()


def occurrences(text: str, values: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where the values occur in a text, as (start, end)."""
    for value in set(values):
        at = text.find(value)
        while at >= 0:
            yield at, at + len(value)
            at = text.find(value, at + 1)


def text_of(name: str, value: Any) -> str:
    """A variable's value, which must be a text."""
    if isinstance(value, str):
        return value
    raise UsageError(
        f"{name!r} is no text, but of type {type(value).__name__}",
        where=here(),
        hint=f"read it as state[{name!r}], which gives any value",
    )
