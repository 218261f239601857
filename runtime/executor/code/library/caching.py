"""Functions of code whose results are kept, as by `functools.lru_cache`."""

from __future__ import annotations

from collections.abc import Callable
from functools import _make_key
from typing import Any

from sgc.runtime.executor.code.fuel import charge, measure
from sgc.runtime.executor.code.methods.attributes import guarded


class Cached:
    """A function that is called once for each arguments in a run, and then gives the same object.
    Unlike Python's, it forgets none: a run's steps bound how many there are."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._found = guarded(function), dict[Any, Any]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        charge(4 + (measure([*args, *kwargs.values()]) >> 4))
        key = _make_key(args, kwargs, False)
        if key not in self._found:
            self._found[key] = self._function(*args, **kwargs)
        return self._found[key]


def cached(function: Any, text: Any, /) -> Cached:
    """text: tells functions of one name apart, whose results a run keeps in one place."""
    return Cached(function)
