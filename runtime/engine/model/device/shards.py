"""A process's share of a decoder: some heads of each layer, and some rows of its MLP. The outputs
of the shares add up to the output of the whole layer.

Tables, norms and the head are whole in each process. Transformers' own plans are not used, as they
cover its modules alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from sgc.kernels.interface import Heads
from sgc.kernels.layers import Norm, Rope
from sgc.runtime.engine.model.decoders.decoder import (
    Attention,
    Block,
    Decoder,
    Experts,
    Mlp,
    Product,
)
from sgc.runtime.engine.model.device.group import Group
from sgc.runtime.engine.model.runner import UnsupportedModel


def share_of(decoder: Decoder, group: Group, device: torch.device) -> Decoder:
    """The share on a device; its blocks are taken from the whole as they are asked for. Raises
    `UnsupportedModel`, once they are, if a layer cannot be shared."""
    sharing = _Sharing(group, device)
    head = sharing.whole(decoder.head)
    table = decoder.table.to(device)
    if decoder.is_tied:
        head = replace(head, weights=(table,))
    positions = None if decoder.positions is None else decoder.positions.to(device)
    blocks, norm = sharing.blocks(decoder.blocks), sharing.norm(decoder.norm)
    return replace(decoder, table=table, blocks=blocks, norm=norm, head=head, positions=positions)


_N = TypeVar("_N", Norm, Norm | None)


class _Sharing:
    def __init__(self, group: Group, device: torch.device) -> None:
        self._group, self._device = group, device
        self._ropes: dict[int, tuple[Rope, Rope]] = {}

    def blocks(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            norms = (block.norm, block.mlp_norm, block.post_norm, block.mlp_post_norm)
            norm, mlp_norm, post_norm, mlp_post_norm = map(self.norm, norms)
            yield replace(
                block, attention=self._attention(block.attention), mlp=self._mlp(block.mlp),
                norm=norm, mlp_norm=mlp_norm, post_norm=post_norm, mlp_post_norm=mlp_post_norm,
            )  # fmt: skip

    def whole(self, product: Product) -> Product:
        weights = tuple(weight.to(self._device) for weight in product.weights)
        return Product(weights, tuple(bias.to(self._device) for bias in product.biases))

    def norm(self, norm: _N) -> _N:
        if norm is None:
            return norm
        weight, bias = (None if t is None else t.to(self._device) for t in (norm.weight, norm.bias))
        return replace(norm, weight=weight, bias=bias)

    def _attention(self, attention: Attention) -> Attention:
        if attention.q_norm is not None or attention.k_norm is not None:
            raise UnsupportedModel(
                "the model norms the queries of all heads together, which processes that have some "
                "of them cannot; leave --tensor-parallel out"
            )
        layout, n = attention.layout, self._group.n
        if layout.n_heads % n or (layout.n_kv_heads % n and n % layout.n_kv_heads):
            raise UnsupportedModel(
                f"{layout.n_heads} heads that share {layout.n_kv_heads} of K and V cannot be dealt "
                f"to {n} processes; choose --tensor-parallel so that it divides them"
            )
        dim, per_kv = layout.head_dim, layout.n_heads // layout.n_kv_heads
        heads = _part(layout.n_heads, self._group)
        kv_heads = range(heads.start // per_kv, (heads.stop - 1) // per_kv + 1)
        kept = [
            (0, heads),
            (layout.n_heads, kv_heads),
            (layout.n_heads + layout.n_kv_heads, kv_heads),
        ]
        rows = torch.cat([_rows(start, part, dim) for start, part in kept])
        return replace(
            attention,
            qkv=self._rows(_joined(attention.qkv), rows),
            out=self._columns(attention.out, _rows(0, heads, dim)),
            layout=replace(
                layout, n_heads=len(heads), n_kv_heads=len(kv_heads), rope=self._rope(layout.rope),
                q_norm=self.norm(layout.q_norm), k_norm=self.norm(layout.k_norm),
            ),
            heads=self._heads(attention.heads, heads),
        )  # fmt: skip

    def _rope(self, rope: Rope | None) -> Rope | None:
        """One for all layers that have the same, as steps make their angles once."""
        if rope is None:
            return None
        if id(rope) not in self._ropes:
            self._ropes[id(rope)] = rope, replace(rope, inverse=rope.inverse.to(self._device))
        return self._ropes[id(rope)][1]

    def _heads(self, heads: Heads, part: range) -> Heads:
        if heads.sinks is None:
            return heads
        return replace(heads, sinks=heads.sinks[part.start : part.stop].to(self._device))

    def _mlp(self, mlp: Mlp | Experts) -> Mlp | Experts:
        if isinstance(mlp, Experts):
            experts = tuple(self._one_mlp(expert) for expert in mlp.experts)
            return replace(mlp, router=self.whole(mlp.router), experts=experts)
        return self._one_mlp(mlp)

    def _one_mlp(self, mlp: Mlp) -> Mlp:
        part = _part(mlp.out.n_in, self._group)
        rows = torch.arange(part.start, part.stop)
        return replace(
            mlp,
            into=self._rows(_joined(mlp.into), rows),
            gate=None if mlp.gate is None else self._rows(_joined(mlp.gate), rows),
            out=self._columns(mlp.out, rows),
        )

    def _rows(self, product: Product, rows: Tensor) -> Product:
        """Some of what a product gives."""
        (weight,) = product.weights
        biases = tuple(bias[rows].to(self._device) for bias in product.biases)
        return Product((weight[rows].to(self._device),), biases)

    def _columns(self, product: Product, columns: Tensor) -> Product:
        """What a product gives of some of its inputs. The first process adds the bias."""
        weight = torch.cat(product.weights) if len(product.weights) > 1 else product.weights[0]
        biases = tuple(bias.to(self._device) for bias in product.biases)
        return Product(
            (weight[:, columns].to(self._device),),
            (torch.cat(biases),) if biases and self._group.rank == 0 else (),
        )


def _joined(product: Product) -> Product:
    if len(product.weights) == 1:
        return product
    biases = (torch.cat(product.biases),) if product.biases else ()
    return Product((torch.cat(product.weights),), biases)


def _part(n: int, group: Group) -> range:
    """Of `n` things in a row those of a process; some have one more if they cannot be dealt
    evenly."""
    return range(n * group.rank // group.n, n * (group.rank + 1) // group.n)


def _rows(start: int, heads: range, head_dim: int) -> Tensor:
    return torch.arange((start + heads.start) * head_dim, (start + heads.stop) * head_dim)
