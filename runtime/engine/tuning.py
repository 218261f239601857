"""What the step process asks of the C libraries under torch, for speed alone. Where one of them
is another library, nothing happens."""

from __future__ import annotations

import ctypes
import os
import sys

# An idle OpenMP thread spins this often before it sleeps: some 0.1 ms, longer than it waits
# between the products of a layer. By default it spins on, and on a busy machine takes the
# processor from the very thread it waits for: measured ten times slower and worse.
_SPINS = 3000

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def wait_briefly() -> None:
    """To be called before torch is imported. What the user has set stays."""
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = str(_SPINS)


def keep_freed_memory() -> None:
    """Results of up to 32 MiB are made in memory that was freed before, up to 64 MiB of it,
    and not in new pages that the system must clear (a tenth to a quarter of a prefill step)."""
    if sys.platform != "linux" or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        return
    libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    libc.mallopt(_M_TRIM_THRESHOLD, 64 << 20)
