"""Settings of the C libraries below the processes, for speed only. With other libraries they have
no effect."""

from __future__ import annotations

import sys
from collections.abc import Mapping

# How often an idle OpenMP thread spins before it sleeps: some milliseconds, longer than the gap
# between two matrix products. With a tenth of it a quiet machine is a quarter slower (a sleeping
# thread must be woken for nearly every product). With no limit, on a busy machine the spinning
# threads take processors from those they wait for, and steps become ten times slower or worse.
_SPINS = 30_000

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


_TUNABLES, _HUGE_PAGES = "GLIBC_TUNABLES", "glibc.malloc.hugetlb"


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Variables to add to a step process's environment; existing ones are kept.

    Weights in huge pages make a decode step of 0.4 billion parameters 1.3 times as fast (2 cores,
    bfloat16): it reads all weights, and every 4 KiB page would need an address lookup.
    """
    added: dict[str, str] = {}
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & given.keys():
        added["GOMP_SPINCOUNT"] = str(_SPINS)
    tunables = given.get(_TUNABLES, "")
    if _HUGE_PAGES not in tunables:
        added[_TUNABLES] = ":".join(filter(None, [tunables, f"{_HUGE_PAGES}=1"]))
    return added


def keep_freed_memory(most_bytes: int = 512 << 20) -> None:
    """Lets malloc reuse freed memory, up to `most_bytes`, for blocks of up to 32 MiB. New pages,
    which the system must find and clear, take a tenth of a prefill step, and on a virtual machine,
    whose host must find them too, more than twice the step."""
    import ctypes  # here, because the server starts the step process before it needs ctypes

    if sys.platform != "linux" or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        return
    libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    libc.mallopt(_M_TRIM_THRESHOLD, most_bytes)
