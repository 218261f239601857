"""When the engine's processes run Python's cyclic garbage collector."""

from __future__ import annotations

import gc

# A collection visits all young objects, a full one visits everything. A busy engine makes hundreds
# of objects per step, and reference counts free nearly all of them.
_YOUNG_OBJECTS = 50_000


def collect() -> None:
    """Turns collection on if `start.py` turned it off; called once modules are imported."""
    if not gc.isenabled():
        gc.freeze()  # imported objects are never visited
        gc.enable()


def collect_seldom() -> None:
    """Exempts all objects loaded so far from collection, and makes collections rare."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)
