"""Runs of integers: token ids and pages, and the bytes of these."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
NO_INTS: Ints = np.empty(0, np.int64)
ITEM_BYTES = NO_INTS.itemsize


def common_prefix(a: Ints, b: Ints) -> int:
    """How many leading elements are equal."""
    n = min(len(a), len(b))
    if n == 0:
        return 0
    first = (a[:n] != b[:n]).tobytes().find(1)
    return n if first < 0 else first


class IntBuffer:
    """A growing run of integers that returns views; appending is amortised O(1)."""

    __slots__ = ("_data", "_n")

    def __init__(self, start: Ints = NO_INTS) -> None:
        self._n = len(start)
        self._data: Ints = NO_INTS
        if self._n:
            self._data = np.empty(self._n + 16, np.int64)
            self._data[: self._n] = start

    def __len__(self) -> int:
        return self._n

    @property
    def view(self) -> Ints:
        """Valid until the next change."""
        return self._data[: self._n]

    @property
    def last(self) -> Ints:
        """The last element, as a view of length 1."""
        return self._data[self._n - 1 : self._n]

    def at(self, index: int) -> int:
        return self._data.item(index)

    def extend(self, more: Ints) -> None:
        self._grow(len(more))
        self._data[self._n : self._n + len(more)] = more
        self._n += len(more)

    def append(self, value: int) -> None:
        if self._n == len(self._data):
            self._grow(1)
        self._data[self._n] = value
        self._n += 1

    def clear(self) -> None:
        self._n = 0

    def cut(self, n: int) -> Ints:
        """Keeps the first `n` elements; returns the rest."""
        rest = self._data[n : self._n].copy()
        self._n = n
        return rest

    def _grow(self, n: int) -> None:
        if self._n + n > len(self._data):
            bigger = np.empty(2 * (self._n + n) + 8, np.int64)
            bigger[: self._n] = self._data[: self._n]
            self._data = bigger
