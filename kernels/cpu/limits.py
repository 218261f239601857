"""What this machine can do at most, measured: arithmetic from registers, and reading memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from sgc.kernels.cpu.library import Library, Threads

_REGION = 256 << 20  # larger than any cache


@dataclass(frozen=True, slots=True)
class Limits:
    """Per second, with all threads: operations on bf16 and on fp32, and bytes read."""

    bf16: float
    fp32: float
    memory: float


def measure(library: Library, threads: Threads, seconds: float = 0.2) -> Limits:
    """Takes three times `seconds`, and 256 MiB."""
    found = (ctypes.c_double * 3)()
    if library.c.sgc_limits(_REGION, seconds, threads.handle, found):
        raise library.error()
    return Limits(*found)
