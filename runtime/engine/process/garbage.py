"""When the engine's own processes look for what is garbage in cycles."""

from __future__ import annotations

import gc

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
