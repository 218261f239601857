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
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(profile)
        watching.on = before


def unhooked(function: Callable[P, R]) -> Callable[P, R]:
    """Runs a function of this package, which calls no code of the user's, without this thread's
    trace and profile functions: these would be called for each of its calls, and see nothing.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        trace, profile = sys.gettrace(), sys.getprofile()
        if trace is None and profile is None:
            return function(*args, **kwargs)
        sys.settrace(None)
        sys.setprofile(None)
        try:
            return function(*args, **kwargs)
        finally:
            if sys.gettrace() is None:  # else the function has set one
                sys.settrace(trace)
            if sys.getprofile() is None:
                sys.setprofile(profile)

    return run
