"""Where a model's K and V are kept, and what its layers need of the batch that is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from sgc.kernels.interface import Heads, PagedAttention, write


@dataclass(slots=True)
class KVPool:
    """Each layer's K and V: [n_pages, n_kv_heads, head_dim], made when the layer first runs."""

    n_pages: int
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def layer(self, index: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """k, v: [n_tokens, n_kv_heads, head_dim], an example of what it will hold."""
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
        """What one page takes in all layers that have run."""
        sizes = [t[0].numel() * t.element_size() for pools in self.layers.values() for t in pools]
        return sum(sizes)


@dataclass(frozen=True, slots=True)
class Step:
    """One batch on its way through the layers. slots: [n_tokens], the new tokens' pages."""

    attention: PagedAttention
    plan: Any
    slots: Tensor
    pool: KVPool

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, heads: Heads) -> Tensor:
        """Keeps the new tokens' k and v, and attends. q, k, v: [n_tokens, n_heads, head_dim]."""
        k_pool, v_pool = self.pool.layer(layer, k, v)
        write(k_pool, v_pool, self.slots, k, v)
        return self.attention.attend(q, k_pool, v_pool, self.plan, heads)
