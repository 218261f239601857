"""Seeds of single draws, which depend on the program alone.

A draw's seed is derived from the run's seed, the row, the stream's path and the ordinal of the draw
in that stream. It does not depend on the order of a batch, threads, passes or earlier draws.
"""

from __future__ import annotations

import hashlib
import struct

SEED_BITS = 63


def draw_seed(run_seed: int, row: str, path: str, ordinal: int, n_index: int = 0) -> int:
    """A seed of 63 bits for one draw (DESIGN.md, "Seeds")."""
    head = struct.pack(">QIII", run_seed & (2**64 - 1), ordinal, n_index, len(row))
    digest = hashlib.blake2b(
        head + row.encode("utf-8", "surrogatepass") + b"\0" + path.encode("utf-8", "surrogatepass"),
        digest_size=8,
    ).digest()
    return int.from_bytes(digest, "big") >> 1
