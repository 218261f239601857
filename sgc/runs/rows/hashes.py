"""A set of texts that takes 16 bytes each or so: their hashes, in an array.

A million keys in a set of texts are over 100 MB; here they are at most 32. Among a million texts,
the chance that two different ones are taken for equal is 1 in 10 to the 7: callers check before an
equal hash has consequences.
"""

from __future__ import annotations

from array import array

_FIRST = 1 << 12
_MASK = (1 << 64) - 1


class Hashes:
    """The hashes of texts, each with a number of 64 bits if `has_values`."""

    def __init__(self, has_values: bool = False) -> None:
        self._slots = array("Q", bytes(8 * _FIRST))
        self._values = array("Q", bytes(8 * _FIRST)) if has_values else None
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __contains__(self, text: str) -> bool:
        return self._slots[self._place(_hash(text))] != 0

    def get(self, text: str) -> int | None:
        """The number that was added with a text; None if it was not."""
        assert self._values is not None
        place = self._place(_hash(text))
        return self._values[place] if self._slots[place] else None

    def add(self, text: str, value: int = 0) -> bool:
        """Adds a text; False if it is there already, with the number that it has."""
        code = _hash(text)
        place = self._place(code)
        if self._slots[place]:
            return False
        self._slots[place] = code
        if self._values is not None:
            self._values[place] = value & _MASK
        self._n += 1
        if 2 * self._n > len(self._slots):
            self._grow()
        return True

    def _place(self, code: int) -> int:
        slots, mask = self._slots, len(self._slots) - 1
        place = code & mask
        while (found := slots[place]) and found != code:
            place = (place + 1) & mask
        return place

    def _grow(self) -> None:
        slots, values = self._slots, self._values
        size = 2 * len(slots)
        self._slots = array("Q", bytes(8 * size))
        self._values = None if values is None else array("Q", bytes(8 * size))
        for before, code in enumerate(slots):
            if code:
                place = self._place(code)
                self._slots[place] = code
                if values is not None:
                    assert self._values is not None
                    self._values[place] = values[before]


def _hash(text: str) -> int:
    return (hash(text) & _MASK) or 1
