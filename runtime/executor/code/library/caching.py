"""Functions of code whose results are cached, as by `functools.lru_cache`."""

from __future__ import annotations

from collections.abc import Callable
from functools import _make_key
from typing import Any

from sgc.runtime.executor.code.fuel import charge, measure
from sgc.runtime.executor.code.methods.attributes import guarded


class Cached:
    """A function that a run calls once for each tuple of arguments; later calls return the same
    object. Unlike Python's cache, it drops no result: a run's steps bound their number."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._found = guarded(function), dict[Any, Any]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        charge(4 + (measure([*args, *kwargs.values()]) >> 4))
        key = _make_key(args, kwargs, False)
        if key not in self._found:
            self._found[key] = self._function(*args, **kwargs)
        return self._found[key]


def cached(function: Any, text: Any, /) -> Cached:
    """A cached function. text: distinguishes functions of one name, since a run keeps the results
    of all functions in one place."""
    return Cached(function)
