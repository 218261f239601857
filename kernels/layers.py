"""The parts of a decoder's layers, for every way to compute them: norms, rotations, the layout of
heads in a product, activations.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor


class Activation(Enum):
    SILU = "silu"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    RELU = "relu"


@dataclass(frozen=True, slots=True)
class Norm:
    """An RMS norm, or a layer norm, which may have a bias. weight, bias: [width]; no weight means
    ones. A weight of a wider dtype than the input is multiplied before the result is rounded."""

    weight: Tensor | None
    eps: float
    bias: Tensor | None = None
    is_layer_norm: bool = False


@dataclass(frozen=True, slots=True)
class Rope:
    """inverse: [n_rotated / 2], float32, the angle of position 1 for each pair of dimensions.

    scale: of cosines and sines. is_interleaved: pairs are (2i, 2i + 1), not (i, i + n / 2).
    """

    inverse: Tensor
    scale: float = 1.0
    is_interleaved: bool = False

    @property
    def n_rotated(self) -> int:
        return 2 * len(self.inverse)

    def angles(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The cosines and sines by which heads are multiplied: [n, 1, n_rotated] each. positions:
        [n]."""
        halves = [positions.float()[:, None, None] * self.inverse] * 2
        both = torch.stack(halves, -1).flatten(-2) if self.is_interleaved else torch.cat(halves, -1)
        return (both.cos() * self.scale).to(dtype), (both.sin() * self.scale).to(dtype)


@dataclass(frozen=True, slots=True)
class HeadLayout:
    """Q, K and V lie one after the other, each head by head. q_norm, k_norm: RMS norms of each
    head, before it is rotated."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    rope: Rope | None = None

    @property
    def q_width(self) -> int:
        return self.n_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.n_kv_heads * self.head_dim

    @property
    def width(self) -> int:
        return self.q_width + 2 * self.kv_width
