"""Rounding in kernels."""

from __future__ import annotations

import triton
import triton.language as tl

from sgc.kernels.triton.interpreter import is_interpreted

_CUTS_OFF = tl.constexpr(is_interpreted())  # so the interpreter makes bfloat16 of float32


@triton.jit
def rounded(value, dtype: tl.constexpr):
    """Float32 values in dtype: the nearest, of two the even one."""
    if _CUTS_OFF and dtype == tl.bfloat16:
        bits = value.to(tl.uint32, bitcast=True)
        nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        value = tl.where(value == value, nearest.to(tl.float32, bitcast=True), value)
    return value.to(dtype)
