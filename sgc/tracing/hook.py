"""Catches `str` methods called on plain strings that carry a marker.

A plain f-string is no subclass of ours, so its methods cannot be overridden; a profile
hook sees them called as C functions and stops the trace before their result is used.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sgc.tracing.abstract import marked, stop

# What carries markers through whole. Our own frames may call anything.
_CARRY = {"join", "format", "__format__", "__str__", "encode"}


@contextmanager
def watch_marked_strings() -> Iterator[None]:
    """While active on this thread, a method that would read into a marked string stops."""
    before = sys.getprofile()
    sys.setprofile(_hook)
    try:
        yield
    finally:
        # A profiler of C (cProfile) cannot be put back by hand; it ends here.
        sys.setprofile(before if callable(before) else None)


def _hook(frame: types.FrameType, event: str, arg: Any) -> None:
    if event != "c_call":
        return
    receiver = getattr(arg, "__self__", None)
    if type(receiver) is not str or not marked(receiver) or arg.__name__ in _CARRY:
        return
    module = frame.f_globals.get("__name__", "")
    if module == "sgc" or module.startswith("sgc.") or module == "re":
        return
    stop(
        f"str.{arg.__name__} on a text that contains a value known only when the program runs",
    )
