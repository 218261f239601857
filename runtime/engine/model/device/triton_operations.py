"""Our own Triton kernels between a decoder's matrix products; torch where there is none."""

from __future__ import annotations

from torch import Tensor

from sgc.kernels.layers import Activation, HeadLayout, Norm, Rope
from sgc.kernels.triton.activations import gated
from sgc.kernels.triton.norms import rms_norm
from sgc.kernels.triton.place import place, rope_table
from sgc.runtime.engine.model.device.operations import Placing, TorchOperations

_GATED = (Activation.SILU, Activation.GELU_TANH)


class TritonOperations(TorchOperations):
    def __init__(self) -> None:
        self._tables: dict[int, tuple[Rope, Tensor]] = {}

    def normed(self, norm: Norm | None, x: Tensor) -> Tensor:
        if norm is None or norm.is_layer_norm:
            return super().normed(norm, x)
        return rms_norm(x, norm.weight, norm.eps)

    def add_normed(self, norm: Norm | None, x: Tensor, added: Tensor) -> Tensor:
        if norm is None or norm.is_layer_norm:
            return super().add_normed(norm, x, added)
        return rms_norm(added, norm.weight, norm.eps, residual=x)

    def gated(self, pair: Tensor, activation: Activation) -> Tensor:
        if activation not in _GATED:
            return super().gated(pair, activation)
        return gated(pair, activation)

    def placed(
        self, qkv: Tensor, layout: HeadLayout, step: Placing, k_pool: Tensor, v_pool: Tensor
    ) -> Tensor:
        table = None if layout.rope is None else self._table(layout.rope, step.n_positions, qkv)
        return place(qkv, layout, table, step.positions, step.slots, k_pool, v_pool)

    def _table(self, rope: Rope, n_positions: int, like: Tensor) -> Tensor:
        """The rope is kept too, so that another cannot take its identity."""
        if id(rope) not in self._tables:
            self._tables[id(rope)] = rope, rope_table(rope, n_positions, like.device)
        return self._tables[id(rope)][1]
