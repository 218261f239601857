"""Functions of lists: each returns a new list, whose length is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.interface.value_limits import check_items


def _plus(left: list[Any], right: list[Any]) -> list[Any]:
    check_items(len(left) + len(right))
    return [*left, *right]


def _times(items: list[Any], n: int) -> list[Any]:
    check_items(len(items) * max(n, 0))
    return [*items] * n


def _push(items: list[Any], item: Any) -> list[Any]:
    check_items(len(items) + 1)
    return [*items, item]


def _insert(items: list[Any], index: int, item: Any) -> list[Any]:
    check_items(len(items) + 1)
    made = [*items]
    made.insert(index, item)
    return made


def _put(items: list[Any], index: int, item: Any) -> list[Any]:
    made = [*items]
    made[index] = item
    return made


def _without(items: list[Any], index: int) -> list[Any]:
    made = [*items]
    made.pop(index)
    return made


def _removed(items: list[Any], item: Any) -> list[Any]:
    made = [*items]
    made.remove(item)
    return made


LIST_EVALUATORS: dict[str, Callable[..., Any]] = {
    "all": lambda items: all(items),
    "any": lambda items: any(items),
    "insert": _insert,
    "largest": lambda items: max(items),
    "named": lambda pairs, name: dict(pairs)[name],
    "n_of": lambda items, item: [*items].count(item),
    "plus": _plus,
    "push": _push,
    "put": _put,
    "removed": _removed,
    "smallest": lambda items: min(items),
    "sorted": lambda items, reverse: sorted(items, reverse=reverse),
    "sum": lambda items, start: sum(items, start),
    "times": _times,
    "where": lambda items, item: [*items].index(item),
    "without": _without,
}
