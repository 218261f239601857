"""What a page holds: one token's K, or V, in one layer. Our kernels read and write pages in place
(`cpu/native/attention.h: page_bytes`), the pool makes them (`runtime/engine/cache/kv_pool.py`), and
other stores, on other devices or on disk, copy their bytes: a page's bytes are contiguous, and
depend only on its token and the tokens before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class PageFormat:
    """[n_heads, head_dim] numbers of `dtype`, head by head.

    In int8, n_heads scales (float32) follow, at the next multiple of their size. A number stands
    for itself times its head's scale, which makes the largest of the head's numbers 127.
    """

    n_heads: int
    head_dim: int
    dtype: torch.dtype

    @property
    def has_scales(self) -> bool:
        return self.dtype == torch.int8

    @property
    def n_bytes(self) -> int:
        if self.has_scales:
            return self._scales_at + _SCALE_BYTES * self.n_heads
        return self.n_heads * self.head_dim * self.dtype.itemsize

    def pool(self, n_pages: int, device: torch.device | str = "cpu") -> Tensor:
        """Uninitialized memory for pages: [n_pages, n_heads, head_dim], or with scales [n_pages,
        n_bytes]."""
        if self.has_scales:
            return torch.empty(n_pages, self.n_bytes, dtype=torch.int8, device=device)
        shape = n_pages, self.n_heads, self.head_dim
        return torch.empty(shape, dtype=self.dtype, device=device)

    def scales(self, pool: Tensor) -> Tensor:
        """A view of the pages' scales: [n_pages, n_heads]."""
        assert self.has_scales
        return pool[:, self._scales_at :].view(torch.float32)

    def values(self, pool: Tensor) -> Tensor:
        """The pages' values: [n_pages, n_heads, head_dim], in float32 if they have scales."""
        if not self.has_scales:
            return pool
        numbers = pool[:, : self.n_heads * self.head_dim].view(
            len(pool), self.n_heads, self.head_dim
        )
        return numbers.float() * self.scales(pool)[..., None]

    @property
    def _scales_at(self) -> int:
        n = self.n_heads * self.head_dim
        return -(-n // _SCALE_BYTES) * _SCALE_BYTES
