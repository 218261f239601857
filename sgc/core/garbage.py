"""How often Python's garbage collector runs."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_asked: list[int] = []
_before = gc.get_threshold()


@contextmanager
def fewer_collections(n_objects: int) -> Iterator[None]:
    """Within the block, on any thread, a collection begins after `n_objects` new objects, not after
    Python's 700: for work that makes many objects which stay, and few cycles. Of several blocks,
    the largest number holds.
    """
    _change(_asked.append, n_objects)
    try:
        yield
    finally:
        _change(_asked.remove, n_objects)


def _change(change: Callable[[int], None], n_objects: int) -> None:
    global _before
    with _lock:
        if not _asked:
            _before = gc.get_threshold()
        change(n_objects)
        if _before[0]:  # else there are no collections
            gc.set_threshold(max(_before[0], *_asked, 0), *_before[1:])
