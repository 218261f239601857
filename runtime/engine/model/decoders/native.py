"""Writes a decoder as a program of our own CPU kernels. Weights are packed layer by layer, and what
they were packed from is given back to the system.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sgc.kernels.cpu.library import Epilogue, Packed
from sgc.kernels.cpu.program import Buffer, ExpertBuffers, Program, Writer
from sgc.kernels.layers import Activation, Norm
from sgc.runtime.engine.model.decoders.decoder import (
    Attention,
    Block,
    Decoder,
    Experts,
    Mlp,
    Product,
)
from sgc.runtime.engine.model.decoders.deltas import Deltas
from sgc.runtime.engine.model.decoders.unmapping import unmap

_PLAIN = {
    Activation.SILU: Epilogue.SILU,
    Activation.GELU: Epilogue.GELU,
    Activation.GELU_TANH: Epilogue.GELU_TANH,
    Activation.RELU: Epilogue.RELU,
}
_GATED = {Activation.SILU: Epilogue.SWIGLU, Activation.GELU_TANH: Epilogue.GEGLU_TANH}


@dataclass(frozen=True, slots=True)
class Programs:
    """Both have the same layers and weights. hidden: ends with what the head gets."""

    logits: Program
    hidden: Program


def write(decoder: Decoder, writer: Writer, deltas: Deltas | None = None) -> Programs:
    """The decoder's weights are not needed afterwards, but for its tables. deltas: of adapters."""
    x = writer.buffer("x", decoder.table.shape[1], is_wide=True)
    layers = _Layers(writer, x, deltas)
    writer.embed(decoder.table, layers.x, decoder.table_scale)
    if decoder.positions is not None:
        writer.place(decoder.positions, layers.x)
    index, block = 0, next(decoder.blocks, None)
    while block is not None:
        following = next(decoder.blocks, None)
        layers.write(index, block, is_last=following is None)
        index, block = index + 1, following
    hidden = _ending_with_hidden(decoder.norm, layers)
    h = layers.normed(decoder.norm)
    head, h = layers.product(h, decoder.head, is_read_elsewhere=decoder.is_tied)
    logits = writer.last("logits", head.n_out)
    writer.linear(head, h, logits, Epilogue.STORE_F32)
    if decoder.logit_cap or decoder.logit_scale != 1.0:
        writer.cap(logits, decoder.logit_scale, decoder.logit_cap or 0.0)
    return Programs(writer.finished(), hidden)


def _ending_with_hidden(norm: Norm | None, layers: _Layers) -> Program:
    writer = layers.writer.branch()
    out = writer.last("hidden", layers.x.width)
    if norm is None:
        writer.copy(layers.x, out)
    else:
        writer.norm(norm, layers.x, out)
    return writer.finished()


@dataclass(frozen=True, slots=True)
class _Layers:
    """x: the residual stream."""

    writer: Writer
    x: Buffer
    deltas: Deltas | None

    def write(self, index: int, block: Block, is_last: bool) -> None:
        attention, norm = block.attention, block.mlp_norm
        attended = self._attend(index, attention, self.normed(block.norm))
        if is_last:  # only these rows go on
            self.writer.select(self.x, attended)
        if block.is_parallel:
            h = self.normed(norm or block.norm)
            self._add(block, attention.out, attended, block.post_norm)
        else:
            self._add(block, attention.out, attended, block.post_norm)
            h = self.normed(norm)
        self._mlp(block, h)

    def normed(self, norm: Norm | None) -> Buffer:
        """The residual stream as the next product takes it."""
        out = self.writer.buffer("h", self.x.width)
        if norm is None:
            self.writer.copy(self.x, out)
        else:
            self.writer.norm(norm, self.x, out)
        return out

    def product(
        self, h: Buffer, *products: Product, is_read_elsewhere: bool = False
    ) -> tuple[Packed, Buffer]:
        """Packs a product of `h`, and returns it with its input; two of them are pairs."""
        weights = [weight for product in products for weight in product.weights]
        longer = None if self.deltas is None else self.deltas.longer(weights)
        if longer is None:
            return self.packed(*products, is_read_elsewhere=is_read_elsewhere), h
        writer = self.writer
        out = writer.buffer("longer", h.width + longer.width)
        downs = [(None if down is None else writer.pack([down]), at) for down, at in longer.downs]
        writer.adapt(h, out, downs)
        return self.packed(
            *products, is_read_elsewhere=is_read_elsewhere, longer=longer.weights
        ), out

    def packed(
        self,
        *products: Product,
        is_read_elsewhere: bool = False,
        in_dtype: bool = False,
        longer: list[Tensor] | None = None,
    ) -> Packed:
        """Packs a product; two of them are pairs. longer: in place of its weights."""
        weights = [weight for product in products for weight in product.weights]
        biases = [bias for product in products for bias in product.biases]
        packed = self.writer.pack(
            longer or weights, biases, are_pairs=len(products) == 2, in_dtype=in_dtype
        )
        if not is_read_elsewhere:
            unmap(weights)
        return packed

    def _attend(self, index: int, attention: Attention, h: Buffer) -> Buffer:
        layout = attention.layout
        qkv = self.writer.buffer("qkv", layout.width)
        packed, h = self.product(h, attention.qkv)
        self.writer.linear(packed, h, qkv, Epilogue.STORE)
        if attention.q_norm is not None:
            self.writer.norm(attention.q_norm, qkv, qkv, width=layout.q_width)
        if attention.k_norm is not None:
            at, width = layout.q_width, layout.kv_width
            self.writer.norm(attention.k_norm, qkv, qkv, at=at, width=width)
        attended = self.writer.buffer("attended", layout.q_width)
        self.writer.attend(index, qkv, attended, layout, attention.heads)
        return attended

    def _mlp(self, block: Block, h: Buffer) -> None:
        if isinstance(block.mlp, Experts):
            self._experts(block, block.mlp, h)
            return
        products, epilogue = _into(block.mlp)
        into, h = self.product(h, *products)
        inner = self.writer.buffer("inner", block.mlp.into.n_out)
        self.writer.linear(into, h, inner, epilogue)
        self._add(block, block.mlp.out, inner, block.mlp_post_norm)

    def _experts(self, block: Block, mlp: Experts, h: Buffer) -> None:
        assert block.mlp_post_norm is None, "a mixture whose output is normed"
        buffers = ExpertBuffers(
            logits=self.writer.buffer("router", mlp.router.n_out, is_wide=True),
            rows=self.writer.buffer("rows", self.x.width),
            inner=self.writer.buffer("inner", mlp.experts[0].into.n_out),
            wide=self.writer.buffer("wide", self.x.width, is_wide=True),
        )
        # Not quantized: it is small, and a small error sends a token to another expert.
        router = self.packed(mlp.router, in_dtype=True)
        self.writer.linear(router, h, buffers.logits, Epilogue.STORE_F32)
        products: list[tuple[Packed, Packed]] = []
        epilogue = _into(mlp.experts[0])[1]
        for expert in mlp.experts:
            products.append((self.packed(*_into(expert)[0]), self.packed(expert.out)))
        self.writer.experts(
            products, epilogue, buffers, h, self.x,
            n_chosen=mlp.n_chosen, is_normed=mlp.is_normed, scale=block.scale,
        )  # fmt: skip

    def _add(self, block: Block, product: Product, h: Buffer, post_norm: Norm | None) -> None:
        """Adds a product to the residual stream."""
        packed, h = self.product(h, product)
        if post_norm is None:
            self.writer.linear(packed, h, self.x, Epilogue.ADD, block.scale)
            return
        wide = self.writer.buffer("wide", self.x.width, is_wide=True)
        self.writer.linear(packed, h, wide, Epilogue.STORE_F32)
        self.writer.norm(post_norm, wide, self.x, adds=True)


def _into(mlp: Mlp) -> tuple[tuple[Product, ...], Epilogue]:
    """An MLP's first product, or a pair of them."""
    if mlp.gate is None:
        return (mlp.into,), _PLAIN[mlp.activation]
    return (mlp.gate, mlp.into), _GATED[mlp.activation]
