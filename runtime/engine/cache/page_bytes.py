"""The bytes of the pages of a pool in the host's memory, as they are taken to disk and back
(`disk/pages.py`): layer by layer, K before V, as each lies in its pool (`kernels/pages.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.ints import Bytes, Ints


class HostPages:
    """Makes a pool's layers from their known formats: pages may come before the model runs."""

    def __init__(self, pool: KVPool) -> None:
        self._parts: list[npt.NDArray[Any]] = []  # [n_pages], an item a page
        for index, formats in sorted(pool.formats.items()):
            for tensor, page in zip(pool.layer(index, *formats), formats, strict=True):
                rows = tensor.view(pool.n_pages, -1).view(torch.uint8).numpy()
                self._parts.append(rows.view(np.dtype((np.void, page.n_bytes)))[:, 0])
        self.token_bytes = sum(part.itemsize for part in self._parts)

    def read(self, pages: Ints) -> Bytes:
        data = np.empty(len(pages) * self.token_bytes, np.uint8)
        for part, there in self._beside(data):
            part.take(pages, out=there, mode="clip")  # any other mode makes a copy first
        return data

    def write(self, pages: Ints, data: Bytes) -> None:
        for part, there in self._beside(data):
            part[pages] = there[len(there) - len(pages) :]

    def _beside(self, data: Bytes) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Pairs of each part of the pool and its share of the data."""
        at, n = 0, len(data) // self.token_bytes
        for part in self._parts:
            end = at + n * part.itemsize
            yield part, data[at:end].view(part.dtype)
            at = end
