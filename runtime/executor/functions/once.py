"""Caches facts that are found once for each program, by the identity of its graph or nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

MAX_MADE = 64
A = TypeVar("A")
R = TypeVar("R")


class _Same(Generic[A]):
    """A dict key that compares an object by identity, and keeps it alive so its id stays unique."""

    __slots__ = ("of",)

    def __init__(self, of: A) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def made_once(make: Callable[[A], R]) -> Callable[[A], R]:
    """Caches a function's last results by the identity of its argument: comparing programs by value
    would cost more than it saves.
    """
    kept = lru_cache(MAX_MADE)(lambda same: make(same.of))

    @wraps(make)
    def found(of: A) -> R:
        return kept(_Same(of))

    return found
