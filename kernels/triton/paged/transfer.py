"""Copies host arrays to a device, many in one copy, for which the host does not wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

_ALIGNED = 4  # numbers, 16 bytes: kernels are compiled for pointers that are so aligned


class Packing:
    """Where int32 arrays of given lengths lie in one tensor."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._slices = []
        start = 0
        for n in lengths:
            self._slices.append(slice(start, start + n))
            start += -(-n // _ALIGNED) * _ALIGNED
        self.n_numbers = start

    def host(self, arrays: Sequence[npt.NDArray[Any]], device: torch.device) -> Tensor:
        """The arrays, packed, in memory from which the device copies by itself. An array that is
        shorter than its place is followed by zeros."""
        pinned = device.type == "cuda"
        packed = torch.empty(self.n_numbers, dtype=torch.int32, pin_memory=pinned)
        numbers = packed.numpy()
        for array, place in zip(arrays, self._slices, strict=True):
            end = place.start + array.size
            assert end <= place.stop, "an array longer than its place"
            numbers[place.start : end] = array.reshape(-1)
            numbers[end : place.stop] = 0
        return packed

    def views(self, packed: Tensor) -> list[Tensor]:
        return [packed[place] for place in self._slices]


def to_device(arrays: Sequence[npt.NDArray[Any]], device: torch.device) -> list[Tensor]:
    """The arrays as int32 tensors, each flat, in one copy."""
    packing = Packing([array.size for array in arrays])
    packed = packing.host(arrays, device)
    return packing.views(packed.to(device, non_blocking=True))
