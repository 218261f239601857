"""What a decoder is made of, whatever its family. `families/` finds it in a model's modules;
`fused.py` computes it with torch, `native.py` with our own kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from sgc.kernels.interface import Heads
from sgc.kernels.layers import Activation, HeadLayout, Norm


@dataclass(frozen=True, slots=True)
class Product:
    """x @ weight.T + bias, for one or more weights of the same input, whose outputs are
    concatenated. weights: [n_out, n_in] each; biases: as many, or none."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.biases) in (0, len(self.weights)), "some weights have a bias, others none"

    @property
    def n_in(self) -> int:
        return int(self.weights[0].shape[1])

    @property
    def n_out(self) -> int:
        return sum(len(weight) for weight in self.weights)


@dataclass(frozen=True, slots=True)
class Attention:
    """qkv: of Q, K and V. q_norm, k_norm: over all heads together; `layout` has those of each."""

    qkv: Product
    out: Product
    layout: HeadLayout
    heads: Heads
    q_norm: Norm | None = None
    k_norm: Norm | None = None


@dataclass(frozen=True, slots=True)
class Mlp:
    """out(activation(into(x))); with a gate, out(activation(gate(x)) * into(x))."""

    into: Product
    out: Product
    activation: Activation
    gate: Product | None = None

    def __post_init__(self) -> None:
        if self.gate is not None:
            assert self.gate.n_out == self.into.n_out, "gate and input differ in width"
            assert bool(self.gate.biases) == bool(self.into.biases), "one of them has a bias"


@dataclass(frozen=True, slots=True)
class Experts:
    """MLPs of which each token goes to the `n_chosen` that the router finds likeliest: their
    outputs are added, weighted by the probabilities. is_normed: so that the weights sum to one."""

    router: Product
    experts: tuple[Mlp, ...]
    n_chosen: int
    is_normed: bool

    def __post_init__(self) -> None:
        assert self.router.n_out == len(self.experts), "a router of other experts"
        assert 0 < self.n_chosen <= len(self.experts), "too few experts"


@dataclass(frozen=True, slots=True)
class Block:
    """A layer. norm, mlp_norm: of the inputs of attention and MLP; post_norm, mlp_post_norm: of
    their outputs, before they are added. scale: of what is added to the residual stream.

    is_parallel: both read the layer's input; without an mlp_norm they share its norm.
    """

    attention: Attention
    mlp: Mlp | Experts
    norm: Norm | None
    mlp_norm: Norm | None = None
    post_norm: Norm | None = None
    mlp_post_norm: Norm | None = None
    scale: float = 1.0
    is_parallel: bool = False

    def __post_init__(self) -> None:
        is_post_normed = self.post_norm is not None or self.mlp_post_norm is not None
        assert not (is_post_normed and self.scale != 1.0), "an output is both normed and scaled"


@dataclass(frozen=True, slots=True)
class Decoder:
    """table: [vocab, hidden]; positions: [n_positions, hidden], learned. blocks: each is taken
    once, and its weights may be freed then. logits = cap * tanh(scale * head(norm(x)) / cap)."""

    table: Tensor
    blocks: Iterator[Block]
    norm: Norm
    head: Product
    table_scale: float = 1.0
    positions: Tensor | None = None
    logit_scale: float = 1.0
    logit_cap: float | None = None

    @property
    def is_tied(self) -> bool:
        """Whether the head's weight is the table of embeddings."""
        return self.head.weights[0].data_ptr() == self.table.data_ptr()
