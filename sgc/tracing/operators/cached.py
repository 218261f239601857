"""Helpers under `functools.lru_cache`, whose results Python keeps from run to run.

A trace calls the helper itself, once for each tuple of arguments, and ignores what Python has
kept. The result must depend on the arguments alone, and nothing may change it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, _make_key
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.operators.code.run_time import is_run_time


def caching(function: _lru_cache_wrapper[Any]) -> Callable[..., Any]:
    """What a program calls instead of a cached function."""
    session: Any = current_session()
    is_typed = function.cache_parameters()["typed"]
    name = getattr(function, "__name__", "a helper")

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_run_time(*args, *kwargs.values()):
            _refuse(name)
        key = (id(function), _make_key(args, kwargs, is_typed))
        if key in session.cached:
            return session.cached[key]
        before = session.n_taken
        found = session.entered(function.__wrapped__)(*args, **kwargs)
        if session.n_taken != before:
            _refuse(name)
        session.cached[key] = found
        session.watch(name, found)
        return found

    call.__name__ = name
    return call


def _refuse(name: str) -> None:
    stop(
        f"{name}, whose results are cached from run to run, uses what is known only at run time",
        hint="call it without the cache; or " + INTERPRET,
    )
