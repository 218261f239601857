"""How the engine's own processes give memory back: what is garbage in cycles, and large blocks."""

from __future__ import annotations

import ctypes
import gc
import sys

# Each collection walks what young objects there are, and a full one everything; a busy engine
# makes hundreds of objects a step, nearly all of them freed by their reference counts.
_YOUNG_OBJECTS = 50_000


def collect() -> None:
    """From now on as Python does, if `start.py` has put it off; called when modules are there."""
    if not gc.isenabled():
        gc.freeze()  # what was imported is not looked through even once
        gc.enable()


def collect_seldom() -> None:
    """What is loaded by now lives as long as the process and is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_LARGEST_REUSED = 32 * 1024 * 1024  # the most that glibc takes
_MOST_KEPT = 256 * 1024 * 1024


def reuse_large_blocks() -> None:
    """A freed block is kept for the next one. Else glibc gets the pages of each large text from
    the kernel anew, 0.4 to 3 ms a megabyte in which no other thread of Python runs.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _LARGEST_REUSED)
            mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT)
