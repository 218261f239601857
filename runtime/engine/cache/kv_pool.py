"""The pages of a model's KV cache, and the batch as the model's layers see it. `kernels/pages.py`
says what a page holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sgc.kernels.interface import Heads, PagedAttention, write
from sgc.kernels.pages import PageFormat


@dataclass(slots=True)
class KVPool:
    """Each layer's pages of K and of V, made when the layer first runs.

    formats: of the layers, by index. windows: the attention windows of the layers.
    """

    n_pages: int
    device: torch.device | str = "cpu"
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    formats: dict[int, tuple[PageFormat, PageFormat]] = field(default_factory=dict)
    windows: set[int | None] = field(default_factory=set)

    def layer(self, index: int, k: PageFormat, v: PageFormat) -> tuple[Tensor, Tensor]:
        """The layer's pools, of these formats."""
        pools = self.layers.get(index)
        if pools is None:
            pools = k.pool(self.n_pages, self.device), v.pool(self.n_pages, self.device)
            self.layers[index], self.formats[index] = pools, (k, v)
        return pools

    @property
    def token_bytes(self) -> int:
        """Bytes that one page takes in all layers that have run."""
        sizes = [t[0].numel() * t.element_size() for pools in self.layers.values() for t in pools]
        return sum(sizes)


@dataclass(frozen=True, slots=True)
class Step:
    """One batch as the layers see it. slots: [n_tokens], the new tokens' pages. groups: its rows,
    for recurrent layers (`model/recurrent/states.py`)."""

    attention: PagedAttention
    plan: Any
    slots: Tensor
    pool: KVPool
    groups: Any = None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, heads: Heads) -> Tensor:
        """Stores the new tokens' k and v, and attends. q, k, v: [n_tokens, n_heads, head_dim]."""
        formats = (PageFormat(t.shape[1], t.shape[2], t.dtype) for t in (k, v))
        k_pool, v_pool = self.pool.layer(layer, *formats)
        self.pool.windows.add(heads.window)
        write(k_pool, v_pool, self.slots, k, v)
        return self.attention.attend(q, k_pool, v_pool, self.plan, heads)
