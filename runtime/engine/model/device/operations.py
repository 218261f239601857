"""What a decoder's layers compute between their matrix products, with torch or with our own Triton
kernels. Both round as the models do, so that a model answers the same with either."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from sgc.kernels.interface import write
from sgc.kernels.layers import Activation, HeadLayout, Norm, Rope
from sgc.runtime.engine.model.decoders.fused import ACTIVATIONS, normed, rotated


class Operations(Protocol):
    def normed(self, norm: Norm | None, x: Tensor) -> Tensor:
        """x: [n, width]."""
        ...

    def add_normed(self, norm: Norm | None, x: Tensor, added: Tensor) -> Tensor:
        """Adds to x in place, and returns its norm. x, added: [n, width]."""
        ...

    def gated(self, pair: Tensor, activation: Activation) -> Tensor:
        """pair: [n, 2 * width], the gate and what it lets through. Returns [n, width]."""
        ...

    def placed(
        self, qkv: Tensor, layout: HeadLayout, step: Placing, k_pool: Tensor, v_pool: Tensor
    ) -> Tensor:
        """Norms and rotates Q and K, and writes K and V to their pages. qkv: [n, layout.width].
        Returns Q: [n, n_heads, head_dim]."""
        ...


class Placing:
    """Where a step's tokens stand: positions, slots: [n]. A slot below 0 is of no token."""

    def __init__(self, positions: Tensor, slots: Tensor, n_positions: int) -> None:
        """n_positions: more than any position will be."""
        self.positions, self.slots, self.n_positions = positions, slots, n_positions
        self._angles: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}

    def angles(self, rope: Rope, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosines and sines, [n, 1, n_rotated] each, made once for layers that rotate alike."""
        key = id(rope), dtype
        if key not in self._angles:
            self._angles[key] = rope.angles(self.positions, dtype)
        return self._angles[key]


class TorchOperations:
    """Any device."""

    def normed(self, norm: Norm | None, x: Tensor) -> Tensor:
        return normed(norm, x)

    def add_normed(self, norm: Norm | None, x: Tensor, added: Tensor) -> Tensor:
        return normed(norm, x.add_(added))

    def gated(self, pair: Tensor, activation: Activation) -> Tensor:
        gate, into = pair.chunk(2, -1)
        return ACTIVATIONS[activation](gate) * into

    def placed(
        self, qkv: Tensor, layout: HeadLayout, step: Placing, k_pool: Tensor, v_pool: Tensor
    ) -> Tensor:
        parts = torch.split(qkv, [layout.q_width, layout.kv_width, layout.kv_width], -1)
        q, k, v = (part.reshape(len(qkv), -1, layout.head_dim) for part in parts)
        q, k = normed(layout.q_norm, q), normed(layout.k_norm, k)
        if layout.rope is not None:
            angles = step.angles(layout.rope, qkv.dtype)
            q, k = rotated(q, layout.rope, *angles), rotated(k, layout.rope, *angles)
        write(k_pool, v_pool, step.slots, k, v)
        return q
