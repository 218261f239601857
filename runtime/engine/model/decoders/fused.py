"""A decoder's forward with torch's operations. It runs a layer in a dozen of them, where the stock
modules take fifty: Q, K and V are one matrix product, activations and residuals are fused into
products, rotary tables are computed once per step, and the last layer continues only for the wanted
tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from sgc.kernels.layers import Activation, HeadLayout, Norm, Rope
from sgc.runtime.engine.cache.kv_pool import Step
from sgc.runtime.engine.model.decoders.decoder import Block, Decoder, Experts, Mlp
from sgc.runtime.engine.model.decoders.ends import capped, embedded
from sgc.runtime.engine.model.decoders.packed import Linear

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.SILU: F.silu,
    Activation.GELU: F.gelu,
    Activation.GELU_TANH: lambda x: F.gelu(x, approximate="tanh"),
    Activation.RELU: F.relu,
}


class FusedModel:
    """Takes the weights out of a decoder."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._layers = [_Layer(index, block) for index, block in enumerate(decoder.blocks)]
        self._head = Linear.of(decoder.head, is_read_elsewhere=decoder.is_tied)

    def __call__(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """tokens, positions: [n_tokens]; wanted: [n_logits] of them. Returns [n_logits, vocab]."""
        hidden = self.hidden(tokens, positions, wanted, step)
        if len(hidden) == 0:
            return hidden.new_empty(0, self._head.n_out)
        return capped(self._decoder, self._head(hidden))

    def hidden(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """What the head gets: [n_wanted, hidden]."""
        decoder = self._decoder
        x = embedded(decoder, tokens, positions)
        angles = _Angles(positions, x.dtype)
        *layers, last = self._layers
        for layer in layers:
            x = layer.finish(x, layer.attend(x, angles, step))
        attended = last.attend(x, angles, step)
        if len(wanted) == 0:
            return x[:0]
        if len(wanted) < len(tokens):
            x, attended = x[wanted], attended[wanted]
        return normed(decoder.norm, last.finish(x, attended))


class _Layer:
    def __init__(self, index: int, block: Block) -> None:
        self._index, self._block = index, block
        self._qkv = Linear.of(block.attention.qkv)
        self._out = Linear.of(block.attention.out)
        mlp = block.mlp
        self._mlp = MixtureOfExperts(mlp) if isinstance(mlp, Experts) else _Mlp(mlp)

    def attend(self, x: Tensor, angles: _Angles, step: Step) -> Tensor:
        """x: [n_tokens, hidden]. Returns [n_tokens, n_heads * head_dim]."""
        attention = self._block.attention
        layout = attention.layout
        qkv = self._qkv(normed(self._block.norm, x))
        q, k, v = torch.split(qkv, [layout.q_width, layout.kv_width, layout.kv_width], -1)
        q, k = (
            h if norm is None else normed(norm, h)
            for h, norm in ((q, attention.q_norm), (k, attention.k_norm))
        )
        q, k, v = (h.view(len(h), -1, layout.head_dim) for h in (q, k, v))
        q, k = self._placed(q, layout.q_norm, angles), self._placed(k, layout.k_norm, angles)
        return step.attend(self._index, q, k, v, attention.heads).flatten(1)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        block = self._block
        if block.is_parallel:
            h = normed(block.mlp_norm or block.norm, x)
            x = self._plus(self._out, attended, x, block.post_norm)
        else:
            x = self._plus(self._out, attended, x, block.post_norm)
            h = normed(block.mlp_norm, x)
        return self._plus(self._mlp.out, self._mlp.inner(h), x, block.mlp_post_norm)

    def _placed(self, heads: Tensor, norm: Norm | None, angles: _Angles) -> Tensor:
        """heads: [n_tokens, n_heads, head_dim], normed and rotated."""
        layout: HeadLayout = self._block.attention.layout
        heads = heads if norm is None else normed(norm, heads)
        return heads if layout.rope is None else angles.rotated(heads, layout.rope)

    def _plus(self, product: Linear | _Sum, h: Tensor, x: Tensor, post_norm: Norm | None) -> Tensor:
        scale = self._block.scale
        if post_norm is not None:
            return x + normed(post_norm, product(h))
        return product.plus(h, x) if scale == 1.0 else x + product(h) * scale


class _Mlp:
    def __init__(self, mlp: Mlp) -> None:
        self._activation = mlp.activation
        self._gate = None if mlp.gate is None else Linear.of(mlp.gate)
        self._into, self.out = Linear.of(mlp.into), Linear.of(mlp.out)

    def inner(self, h: Tensor) -> Tensor:
        if self._gate is None:
            return self._active(self._into, h)
        return self._into.times(h, self._active(self._gate, h))

    def _active(self, product: Linear, h: Tensor) -> Tensor:
        if self._activation is Activation.SILU:
            return product.silu(h)
        return ACTIVATIONS[self._activation](product(h))


class MixtureOfExperts:
    """Its inner part is what the experts give, as only they know who gave it."""

    def __init__(self, mlp: Experts) -> None:
        self._router = Linear.of(mlp.router)
        self._experts = [_Mlp(expert) for expert in mlp.experts]
        self._n_chosen, self._is_normed = mlp.n_chosen, mlp.is_normed
        self.out = _Sum()

    def inner(self, h: Tensor) -> Tensor:
        likely = torch.softmax(self._router(h), -1, dtype=torch.float32)
        weights, chosen = torch.topk(likely, self._n_chosen, -1)
        if self._is_normed:
            weights = weights / weights.sum(-1, keepdim=True)
        sums = torch.zeros_like(h, dtype=torch.float32)
        for index in sorted(set(chosen.flatten().tolist())):
            rows, rank = torch.where(chosen == index)
            expert = self._experts[index]
            given = expert.out(expert.inner(h[rows]))
            sums.index_add_(0, rows, given * weights[rows, rank, None])
        return sums.to(h.dtype)


class _Sum:
    """Takes the place of a product where there is none."""

    def __call__(self, h: Tensor) -> Tensor:
        return h

    def plus(self, h: Tensor, x: Tensor) -> Tensor:
        return x + h


def normed(norm: Norm | None, x: Tensor) -> Tensor:
    if norm is None:
        return x
    if norm.is_layer_norm:
        return F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, norm.eps)
    wide = x.to(torch.float32, copy=True)
    # Takes half the time of torch's own RMS norm for many rows, and the same for one.
    length = torch.linalg.vector_norm(wide, 2, -1, True)
    scale = length.square_().mul_(1 / x.shape[-1]).add_(norm.eps).rsqrt_()
    wide.mul_(scale)
    if norm.weight is None or norm.weight.dtype == x.dtype:  # as the model's own: rounded before
        out = wide.to(x.dtype)
        return out if norm.weight is None else out.mul_(norm.weight)
    return wide.mul_(norm.weight).to(x.dtype)


class _Angles:
    """The cosines and sines of a step's positions, made once for layers that rotate alike."""

    def __init__(self, positions: Tensor, dtype: torch.dtype) -> None:
        self._positions, self._dtype = positions, dtype
        self._made: dict[int, tuple[Tensor, Tensor]] = {}

    def rotated(self, heads: Tensor, rope: Rope) -> Tensor:
        """heads: [n_tokens, n_heads, head_dim]."""
        key = id(rope)
        if key not in self._made:
            self._made[key] = rope.angles(self._positions, self._dtype)
        return rotated(heads, rope, *self._made[key])


def rotated(heads: Tensor, rope: Rope, cos: Tensor, sin: Tensor) -> Tensor:
    """heads: [n_tokens, n_heads, head_dim], of which the first `n_rotated` dimensions turn."""
    turning, rest = heads[..., : rope.n_rotated], heads[..., rope.n_rotated :]
    if rope.is_interleaved:
        turned = torch.stack((-turning[..., 1::2], turning[..., ::2]), -1).flatten(-2)
    else:
        first, second = turning.chunk(2, -1)
        turned = torch.cat((-second, first), -1)
    turning = turning * cos + turned * sin
    return turning if rest.shape[-1] == 0 else torch.cat((turning, rest), -1)
