"""Linear layers with weights packed in the memory layout of the processor's matrix units.

Stock bfloat16 `F.linear` packs its weight again in every call (1.3 to 1.7 times the time, 2 cores
with AMX). The layout is oneDNN's, through private operations of torch that its own compiler uses:
only this file knows them, and without them it uses `F.linear`. float32 gains nothing and is not
packed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sgc.runtime.engine.model.decoders.decoder import Product
from sgc.runtime.engine.model.decoders.unmapping import unmap

# Any number above a few gives the layout that suits both few rows and many.
_ROWS_HINT = 64


def can_pack(dtype: torch.dtype) -> bool:
    ops = torch.ops.mkldnn
    return (
        dtype == torch.bfloat16
        and torch._C._has_mkldnn
        and all(hasattr(ops, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
        and hasattr(ops, "_is_mkldnn_bf16_supported")
        and bool(ops._is_mkldnn_bf16_supported())
    )


class Linear:
    """x @ weight.T + bias, alone or fused with an elementwise operation on the result.

    weight: [n_out, n_in], not needed afterwards if it is packed; x: [..., n_in].
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.n_out = int(weight.shape[0])
        self._bias = None if bias is None else bias.detach()
        self._is_packed = weight.device.type == "cpu" and can_pack(weight.dtype)
        self._weight = weight.detach()
        if self._is_packed:
            reorder = torch.ops.mkldnn._reorder_linear_weight
            self._weight = reorder(self._weight.contiguous(), _ROWS_HINT)

    @classmethod
    def of(cls, product: Product, *, is_read_elsewhere: bool = False) -> Linear:
        """is_read_elsewhere: whether other code reads the weight, such as an embedding."""
        weights, biases = product.weights, product.biases
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        linear = cls(weight, torch.cat(biases) if biases else None)
        if linear._is_packed and not is_read_elsewhere:
            unmap(weights)
        return linear

    def __call__(self, x: Tensor) -> Tensor:
        return self._packed(x, "none") if self._is_packed else self._plain(x)

    def silu(self, x: Tensor) -> Tensor:
        return self._packed(x, "swish") if self._is_packed else F.silu(self._plain(x))

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        return self._joined(x, other, "add") if self._is_packed else other + self._plain(x)

    def times(self, x: Tensor, other: Tensor) -> Tensor:
        return self._joined(x, other, "mul") if self._is_packed else other * self._plain(x)

    def _plain(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)

    def _packed(self, x: Tensor, then: str) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise.default(
            x, self._weight, self._bias, then, [], ""
        )
        return out

    def _joined(self, x: Tensor, other: Tensor, how: str) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            x, other, self._weight, self._bias, how
        )
        return out


class PackedModule(nn.Module):
    """Replaces an `nn.Linear` in a model."""

    def __init__(self, linear: nn.Linear, is_read_elsewhere: bool = False) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        biases = () if linear.bias is None else (linear.bias.detach(),)
        product = Product((linear.weight.detach(),), biases)
        self._linear = Linear.of(product, is_read_elsewhere=is_read_elsewhere)

    def forward(self, x: Tensor) -> Tensor:
        if x.numel() == 0:  # oneDNN refuses empty inputs
            return x.new_empty(*x.shape[:-1], self.out_features)
        return self._linear(x)


_READ = ("dt_proj",)  # of Mamba layers, whose code reads the weight itself


def pack_linears(model: Any) -> None:
    """Packs every plain linear layer of a model, in place; the originals are freed one by one."""
    if not can_pack(model.dtype):
        return
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in _READ:
                continue
            if type(child) is nn.Linear and child.weight.dtype == torch.bfloat16:
                is_tied = child.weight is model.get_input_embeddings().weight
                setattr(parent, name, PackedModule(child, is_tied))
