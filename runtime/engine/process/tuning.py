"""What the processes ask of the C libraries under them, for speed alone. Where one of them
is another library, nothing happens."""

from __future__ import annotations

import sys
from collections.abc import Mapping

# An idle OpenMP thread spins this often before it sleeps: some milliseconds, longer than it waits
# between two products. A tenth of it makes a quiet machine a quarter slower (a thread that sleeps
# must be woken for nearly every product); without an end, a busy machine's threads take the
# processors from those they wait for, and steps become ten times slower and worse.
_SPINS = 30_000

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


_TUNABLES, _HUGE_PAGES = "GLIBC_TUNABLES", "glibc.malloc.hugetlb"


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What to add to a step process' environment; what is given stays.

    Weights in huge pages make a decode step of 0.4 billion parameters 1.3 times as fast
    (2 cores, bfloat16: it reads all of them, and every 4 KiB of them would be looked up).
    """
    added: dict[str, str] = {}
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & given.keys():
        added["GOMP_SPINCOUNT"] = str(_SPINS)
    tunables = given.get(_TUNABLES, "")
    if _HUGE_PAGES not in tunables:
        added[_TUNABLES] = ":".join(filter(None, [tunables, f"{_HUGE_PAGES}=1"]))
    return added


def keep_freed_memory(most_bytes: int = 512 << 20) -> None:
    """Results of up to 32 MiB are made in memory that was freed before, up to so much of it,
    and not in new pages that the system must find and clear: a tenth of a prefill step, and on a
    virtual machine, whose host must find them too, twice the step and more."""
    import ctypes  # here: the server starts the step process before it has a use for it

    if sys.platform != "linux" or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        return
    libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    libc.mallopt(_M_TRIM_THRESHOLD, most_bytes)
