"""Whether the program's reads are watched on this thread; see `tracing/watch/hook.py`."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

watching = threading.local()


@contextmanager
def unwatched() -> Iterator[None]:
    """Turns watching off, so that this package may read what a program must not."""
    before, watching.on = getattr(watching, "on", False), False
    profile = sys.getprofile()
    is_own = _is_own(profile)
    if is_own:
        sys.setprofile(None)
    try:
        yield
    finally:
        if is_own:
            sys.setprofile(profile)
        watching.on = before


def unhooked(function: Callable[P, R]) -> Callable[P, R]:
    """Runs a function of this package, which calls no code of the user's, without this package's
    trace and profile functions, which would be called for each of its calls and see nothing. Those
    of others, such as a debugger's or a profiler's, stay.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        trace, profile = sys.gettrace(), sys.getprofile()
        if trace is None and profile is None:
            return function(*args, **kwargs)
        is_traced = getattr(trace, "__module__", None) in _HOOKS
        is_profiled = getattr(profile, "__module__", None) in _HOOKS
        if is_traced:
            sys.settrace(None)
        if is_profiled:
            sys.setprofile(None)
        try:
            return function(*args, **kwargs)
        finally:
            if is_traced and sys.gettrace() is None:  # else the function has set one
                sys.settrace(trace)
            if is_profiled and sys.getprofile() is None:
                sys.setprofile(profile)

    return run


def _is_own(hook: object) -> bool:
    """Whether a trace or profile function is this package's. One written in C, such as cProfile's,
    could not be set again."""
    return getattr(hook, "__module__", None) in _HOOKS


_HOOKS = frozenset(f"sgc.tracing.{name}" for name in ("paths.loops", "paths.events", "watch.hook"))
