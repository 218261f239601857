"""Whether the program's reads are watched on this thread; see `tracing/watch/hook.py`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
