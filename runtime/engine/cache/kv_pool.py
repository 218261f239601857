"""The tensors of a model's KV cache, and what its layers need to know of the batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from sgc.kernels.interface import Heads, PagedAttention, write


@dataclass(slots=True)
class KVPool:
    """Each layer's K and V: [n_pages, n_kv_heads, head_dim], made when the layer first runs.

    windows: those that its layers attend with.
    """

    n_pages: int
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    windows: set[int | None] = field(default_factory=set)

    def layer(self, index: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's pools, made like k and v: [n_tokens, n_kv_heads, head_dim]."""
        pools = self.layers.get(index)
        if pools is None:
            pools = (
                k.new_empty(self.n_pages, *k.shape[1:]),
                v.new_empty(self.n_pages, *v.shape[1:]),
            )
            self.layers[index] = pools
        return pools

    @property
    def token_bytes(self) -> int:
        """Bytes that one page takes in all layers that have run."""
        sizes = [t[0].numel() * t.element_size() for pools in self.layers.values() for t in pools]
        return sum(sizes)


@dataclass(frozen=True, slots=True)
class Step:
    """One batch as the layers see it. slots: [n_tokens], the new tokens' pages."""

    attention: PagedAttention
    plan: Any
    slots: Tensor
    pool: KVPool

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, heads: Heads) -> Tensor:
        """Stores the new tokens' k and v, and attends. q, k, v: [n_tokens, n_heads, head_dim]."""
        k_pool, v_pool = self.pool.layer(layer, k, v)
        self.pool.windows.add(heads.window)
        write(k_pool, v_pool, self.slots, k, v)
        return self.attention.attend(q, k_pool, v_pool, self.plan, heads)
