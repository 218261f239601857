"""A decoder's forward on a device: as few and as large operations as its parts allow, none of which
waits for the host, so that a graph can hold all of them (`graphs.py`)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sgc.kernels.layers import Norm
from sgc.kernels.pages import PageFormat
from sgc.runtime.engine.cache.kv_pool import Step
from sgc.runtime.engine.model.decoders.decoder import Block, Decoder, Experts, Mlp, Product
from sgc.runtime.engine.model.decoders.ends import capped, embedded
from sgc.runtime.engine.model.decoders.fused import ACTIVATIONS, MixtureOfExperts
from sgc.runtime.engine.model.device.group import ALONE, Group
from sgc.runtime.engine.model.device.operations import Operations, Placing


class DeviceModel:
    """Takes the weights out of a decoder. n_positions: the longest context. group: the processes
    of which each has a share of the decoder."""

    def __init__(
        self, decoder: Decoder, operations: Operations, n_positions: int, group: Group = ALONE
    ) -> None:
        self._decoder, self._operations = decoder, operations
        self._n_positions = n_positions
        self._layers = [
            _Layer(index, block, operations, group) for index, block in enumerate(decoder.blocks)
        ]
        self._head = _Linear(decoder.head)
        self.waits_for_host = any(layer.has_experts for layer in self._layers)

    def __call__(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """tokens, positions: [n_tokens]; wanted: [n_logits] of them, all if there are as many.
        Returns [n_logits, vocab]."""
        hidden = self.hidden(tokens, positions, wanted, step)
        if len(hidden) == 0:
            return hidden.new_empty(0, self._head.n_out)
        return capped(self._decoder, self._head(hidden))

    def hidden(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """What the head gets: [n_wanted, hidden]."""
        decoder = self._decoder
        x = embedded(decoder, tokens, positions)
        placing = Placing(positions, step.slots, self._n_positions)
        added: Tensor | None = None
        for layer in self._layers:
            is_last = layer is self._layers[-1]
            x, added = layer(x, added, placing, step, wanted if is_last else None)
        if len(wanted) == 0:
            return x[:0]
        assert added is not None, "a decoder without layers"
        return self._operations.add_normed(decoder.norm, x, added)


class _Linear:
    def __init__(self, *products: Product) -> None:
        """The outputs of several are concatenated."""
        weights = [weight for product in products for weight in product.weights]
        biases = [bias for product in products for bias in product.biases]
        self._weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        self._bias = torch.cat(biases) if biases else None
        self.n_out = len(self._weight)

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)


class _Layer:
    def __init__(self, index: int, block: Block, operations: Operations, group: Group) -> None:
        self._index, self._block, self._operations, self._group = index, block, operations, group
        self._qkv, self._out = _Linear(block.attention.qkv), _Linear(block.attention.out)
        mlp = block.mlp
        self.has_experts = isinstance(mlp, Experts)
        self._mlp = (
            MixtureOfExperts(mlp).inner if isinstance(mlp, Experts) else _Mlp(mlp, operations)
        )

    def __call__(
        self, x: Tensor, added: Tensor | None, placing: Placing, step: Step, wanted: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """x, added: the residual stream and what is to be added to it, [n_tokens, hidden] each; x
        changes. wanted: the tokens that go on after attention. Returns both after the layer."""
        block = self._block
        h = self._next(block.norm, x, added)
        attended = self._attended(h, placing, step)
        if wanted is not None and len(wanted) < len(x):
            x, h, attended = x[wanted], h[wanted], attended[wanted]
        out = self._finished(self._out(attended), block.post_norm)
        if block.is_parallel:
            if block.mlp_norm is not None:
                h = self._operations.normed(block.mlp_norm, x)
            given = self._mlp(h)
            x = x + out
        else:
            given = self._mlp(self._next(block.mlp_norm, x, out))
        return x, self._finished(given, block.mlp_post_norm)

    def _next(self, norm: Norm | None, x: Tensor, added: Tensor | None) -> Tensor:
        """The norm of the residual stream, once what was to be added to it is."""
        if added is None:
            return self._operations.normed(norm, x)
        return self._operations.add_normed(norm, x, added)

    def _attended(self, h: Tensor, placing: Placing, step: Step) -> Tensor:
        """Returns [n_tokens, n_heads * head_dim]."""
        attention, layout = self._block.attention, self._block.attention.layout
        qkv = self._qkv(h)
        parts = torch.split(qkv, [layout.q_width, layout.kv_width, layout.kv_width], -1)
        for norm, part in zip((attention.q_norm, attention.k_norm), parts, strict=False):
            if norm is not None:
                part.copy_(self._operations.normed(norm, part))
        page = PageFormat(layout.n_kv_heads, layout.head_dim, qkv.dtype)
        k_pool, v_pool = step.pool.layer(self._index, page, page)
        step.pool.windows.add(attention.heads.window)
        q = self._operations.placed(qkv, layout, placing, k_pool, v_pool)
        return step.attention.attend(q, k_pool, v_pool, step.plan, attention.heads).flatten(1)

    def _finished(self, out: Tensor, post_norm: Norm | None) -> Tensor:
        """What a product gives, as it is added to the residual stream."""
        out = self._group.summed(out)
        if post_norm is not None:
            return self._operations.normed(post_norm, out)
        return out if self._block.scale == 1.0 else out * self._block.scale


class _Mlp:
    def __init__(self, mlp: Mlp, operations: Operations) -> None:
        self._operations, self._activation = operations, mlp.activation
        self._is_gated = mlp.gate is not None
        self._into = _Linear(mlp.into) if mlp.gate is None else _Linear(mlp.gate, mlp.into)
        self._out = _Linear(mlp.out)

    def __call__(self, h: Tensor) -> Tensor:
        inner = self._into(h)
        if self._is_gated:
            return self._out(self._operations.gated(inner, self._activation))
        return self._out(ACTIVATIONS[self._activation](inner))
