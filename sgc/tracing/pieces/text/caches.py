"""The decorators of `functools` that cache a function's results."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

_CACHES = (functools.lru_cache, functools.cache)


def is_cache(value: Any) -> bool:
    return any(value is each for each in _CACHES)


def caches_in(bound: Mapping[str, Any]) -> set[str]:
    """The names of such decorators. bound: the values of names."""
    found = {name for name, value in bound.items() if is_cache(value)}
    modules = [name for name, value in bound.items() if value is functools]
    return found.union(f"{name}.{each.__name__}" for name in modules for each in _CACHES)
