"""The gated activations of feed-forward layers: act(gate) * up (Shazeer, 2020)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sgc.kernels.layers import Activation
from sgc.kernels.triton.rounding import rounded

_BLOCK, _WARPS = 1024, 4


def gated(pair: Tensor, activation: Activation) -> Tensor:
    """act(gate) * up: [n, inner], of pair's dtype; act(gate) is rounded before the product.

    pair: [n, 2 * inner], each row's gate, then its up; rows with any stride. activation: SILU or
    GELU_TANH. Raises AssertionError for others, and for shapes that do not fit.
    """
    assert activation in (Activation.SILU, Activation.GELU_TANH), f"no kernel for {activation}"
    assert pair.ndim == 2, "pair is no [n, 2 * inner]"
    assert pair.is_floating_point(), f"pairs of {pair.dtype}"
    assert pair.shape[1] % 2 == 0, "pair's rows are no two halves"
    assert pair.stride(1) == 1, "pair's rows are not contiguous"
    n, inner = pair.shape[0], pair.shape[1] // 2
    out = torch.empty((n, inner), dtype=pair.dtype, device=pair.device)
    if out.numel() == 0:
        return out
    _gated[(n, triton.cdiv(inner, _BLOCK))](
        pair,
        out,
        pair.stride(0),
        inner,
        IS_SILU=activation is Activation.SILU,
        BLOCK=_BLOCK,
        num_warps=_WARPS,
    )
    return out


@triton.jit
def _gated(pair, out, pair_stride, inner, IS_SILU: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_in = column < inner
    at = pair + row * pair_stride + column
    gate = tl.load(at, mask=is_in, other=0.0).to(tl.float32)
    up = tl.load(at + inner, mask=is_in, other=0.0).to(tl.float32)
    if IS_SILU:
        slope = gate
    else:  # (1 + tanh(y)) / 2 is sigmoid(2 y)
        slope = 1.5957691216057308 * (gate + 0.044715 * gate * gate * gate)
    dtype: tl.constexpr = out.dtype.element_ty
    active = rounded(gate * tl.sigmoid(slope), dtype).to(tl.float32)
    tl.store(out + row * inner + column, rounded(active * up, dtype), mask=is_in)
