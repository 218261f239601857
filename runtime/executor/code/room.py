"""Room for a run of a graph's code on Python's stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python frames that a run may add to its caller's; a nested call of the code takes about ten.
_MAX_FRAMES = 6000


class _Depth:
    """The recursion limit of the process, raised while any code runs."""

    lock = threading.Lock()
    n_runs = 0
    before = 0


@contextmanager
def room() -> Iterator[None]:
    """Raises the recursion limit for the frames of a run."""
    with _Depth.lock:
        if _Depth.n_runs == 0:
            _Depth.before = sys.getrecursionlimit()
        _Depth.n_runs += 1
        if sys.getrecursionlimit() < _Depth.before + _MAX_FRAMES:
            sys.setrecursionlimit(_Depth.before + _MAX_FRAMES)
    try:
        yield
    finally:
        with _Depth.lock:
            _Depth.n_runs -= 1
            if _Depth.n_runs == 0:
                sys.setrecursionlimit(_Depth.before)
