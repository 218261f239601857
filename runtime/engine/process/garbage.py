"""When the engine's processes run Python's cyclic garbage collector."""

from __future__ import annotations

import gc

# A collection visits all young objects, a full one visits everything. A busy engine makes hundreds
# of objects per step, and reference counts free nearly all of them.
_SELDOM = (50_000, 20, 20)
# The server's libraries leave a cycle of five objects for every connection (asyncio's transports)
# and every call (gRPC). With the numbers above, ten thousand of them would wait for a collection,
# and those that were open during one for the four hundredth after it.
_OFTEN_ENOUGH = (10_000, 5, 4)


def collect() -> None:
    """Turns collection on if `start.py` turned it off; called once modules are imported."""
    if not gc.isenabled():
        gc.freeze()  # imported objects are never visited
        gc.enable()


def collect_seldom(has_connections: bool = False) -> None:
    """Exempts all objects loaded so far from collection, and makes collections rare.

    has_connections: whether the process serves clients.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(*(_OFTEN_ENOUGH if has_connections else _SELDOM))
