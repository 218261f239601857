"""RMS norms of rows, with the residual's sum in the same pass (Zhang and Sennrich, 2019)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sgc.kernels.triton.rounding import rounded

MAX_WIDTH = 1 << 16  # a row lies in the registers of one program


def rms_norm(
    x: Tensor,
    weight: Tensor | None,
    eps: float,
    residual: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Each row divided by its root mean square, times weight: [n, width], of x's dtype.

    x: [n, width], rows with any stride. weight: [width], of x's dtype (the normed value is rounded
    before it is multiplied) or float32 (rounded after). residual: [n, width], of x's dtype; x is
    added to it in place, rounded, and the norm is of the sum. out: where to write, which may be x.
    Raises AssertionError for shapes, strides and dtypes that do not fit.
    """
    assert x.ndim == 2, "x is no [n, width]"
    assert x.is_floating_point(), f"rows of {x.dtype}"
    n, width = x.shape
    assert 0 < width <= MAX_WIDTH, f"rows of {width} numbers; at most {MAX_WIDTH}"
    assert x.stride(1) == 1, "x's rows are not contiguous"
    if weight is not None:
        assert weight.shape == (width,), "weight is no [width]"
        assert weight.is_contiguous(), "weight is not contiguous"
        assert weight.dtype in (x.dtype, torch.float32), "weight is of x's dtype or float32"
    for other in (residual, out):
        assert other is None or other.shape == x.shape, "residual or out differ from x in shape"
        assert other is None or other.dtype == x.dtype, "residual or out differ from x in dtype"
        assert other is None or other.stride(1) == 1, "rows are not contiguous"
    if out is None:
        out = torch.empty((n, width), dtype=x.dtype, device=x.device)
    if n == 0:
        return out
    block = triton.next_power_of_2(width)
    _rms_norm[(n,)](
        x,
        weight,
        residual,
        out,
        x.stride(0),
        0 if residual is None else residual.stride(0),
        out.stride(0),
        width,
        eps,
        BLOCK=block,
        IS_WIDE=weight is not None and weight.dtype != x.dtype,
        num_warps=warps_of(block),
    )
    return out


def warps_of(block: int) -> int:
    """Eight numbers a thread, 16 bytes of 16-bit numbers, until a program is full."""
    return min(16, max(1, block // 256))


@triton.jit
def _rms_norm(
    x,
    weight,
    residual,
    out,
    x_stride,
    residual_stride,
    out_stride,
    width,
    eps,
    BLOCK: tl.constexpr,
    IS_WIDE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    is_in = column < width
    value = tl.load(x + row * x_stride + column, mask=is_in, other=0.0).to(tl.float32)
    if residual is not None:
        at = residual + row * residual_stride + column
        value += tl.load(at, mask=is_in, other=0.0).to(tl.float32)
        total = rounded(value, x.dtype.element_ty)
        tl.store(at, total, mask=is_in)
        value = total.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + eps)
    value = scaled(value, scale, column, is_in, weight, x.dtype.element_ty, IS_WIDE)
    tl.store(out + row * out_stride + column, value, mask=is_in)


@triton.jit
def scaled(value, scale, column, is_in, weight, dtype: tl.constexpr, IS_WIDE: tl.constexpr):
    """Float32 values times scale and the weights of their columns, rounded as in rms_norm."""
    value = value * scale
    if weight is not None:
        factor = tl.load(weight + column, mask=is_in, other=0.0).to(tl.float32)
        if IS_WIDE:
            value = value * factor
        else:
            value = rounded(value, dtype).to(tl.float32) * factor
    return rounded(value, dtype)
