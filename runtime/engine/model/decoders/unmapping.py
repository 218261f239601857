"""Gives back the memory of weights that were packed and are not read again.

They mostly lie in a mapped file, which other weights keep mapped, and would stay in memory beside
the packed ones. What the system keeps of the file itself is left alone: the next start reads it.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator, Sequence

from torch import Tensor

_MADV_DONTNEED = 4
_WORTH_BYTES = 1 << 16  # a smaller weight frees less than it costs to find out where it lies
_Range = tuple[int, int]


def unmap(weights: Sequence[Tensor]) -> None:
    """Unmaps the pages that lie whole in a weight, where they are of a file: read once more they
    would be as in the file. Memory of other kinds stays as it is."""
    large = [weight for weight in weights if weight.nbytes >= _WORTH_BYTES]
    if sys.platform != "linux" or not large:
        return
    files = list(_mapped_files())
    for weight in large:
        start, end = weight.data_ptr(), weight.data_ptr() + weight.nbytes
        if any(first <= start and end <= last for first, last in files):
            _forget(start, end)


def _mapped_files() -> Iterator[_Range]:
    """The address ranges of files; see proc_pid_maps(5)."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, _, _, _, inode, *path = line.split(maxsplit=5)
            if inode != "0" and path:
                first, last = span.split("-")
                yield int(first, 16), int(last, 16)


def _forget(start: int, end: int) -> None:
    start, end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if start < end:  # where it is refused, the memory stays
        madvise = ctypes.CDLL(None).madvise
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)
