"""Logits as whole numbers: given a row's best logit and its temperature, a token's key tells how
likely the token is. Its weight in fixed point follows from the key alone, so that sums are exact in
any order.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

# A key is TOP for the best, one less for each 2**-23 of its exponent's distance, and 0 from 32 on,
# where the weight is 0: it has float32's precision.
KEY_BITS = 28
TOP = tl.constexpr((1 << KEY_BITS) - 1)
_STEPS = tl.constexpr(float(1 << 23))
_STEP_IN_OCTAVES = tl.constexpr(2.0**-23 / math.log(2))
_FURTHEST = tl.constexpr(float(1 << KEY_BITS))
# A weight is at most 1, a vocabulary at most 2**19 tokens: their sum stays under 2**62.
_ONE = tl.constexpr(float(1 << 43))

_LAST_ID = tl.constexpr((1 << 31) - 1)
_FAULT = tl.constexpr((1 << 32) - 1)  # a NaN or an infinity: greater than each number
_INFINITE = tl.constexpr(0xFF800000)
_MINUS_INFINITE = tl.constexpr(0x007FFFFF)


@triton.jit
def load_row(logits, stride, row, column, vocab):
    """Float32 logits of a row; -inf beyond its end."""
    at = logits + row * stride + column
    return tl.load(at, mask=column < vocab, other=float("-inf")).to(tl.float32)


@triton.jit
def masked(x, allowed, stride, is_masked, row, column, vocab):
    """-inf for tokens whose bit of allowed is not set, where is_masked."""
    if allowed is not None:
        applies = True
        if is_masked is not None:
            applies = tl.load(is_masked + row) != 0
        if applies:
            at = allowed + row * stride + column // 32
            word = tl.load(at, mask=column < vocab, other=0)
            x = tl.where(((word >> (column % 32)) & 1) != 0, x, float("-inf"))
    return x


@triton.jit
def packed_best(x, raw, column):
    """int64, the greatest for the greatest x, of equals for the least column; a raw NaN or infinity
    is greater than all."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    ordered = (bits ^ ((bits >> 31) | -2147483648)).to(tl.uint32, bitcast=True).to(tl.int64)
    is_fault = (raw != raw) | (raw == float("inf"))
    return (tl.where(is_fault, _FAULT, ordered) << 31) + (_LAST_ID - column)


@triton.jit
def best_id(packed):
    """-1 if the best is no finite number."""
    ordered = packed >> 31
    is_finite = (ordered < _INFINITE) & (ordered > _MINUS_INFINITE)
    return tl.where(is_finite, _LAST_ID - (packed & _LAST_ID), -1)


@triton.jit
def best_number(packed):
    ordered = packed >> 31
    bits = tl.where(ordered >= 2147483648, ordered - 2147483648, 4294967295 - ordered)
    return bits.to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit
def key_of(x, best, temperature):
    """int32, 0 … TOP, in the order of x."""
    # Fused by name, so that every kernel rounds alike: they must agree on keys.
    distance = tl.minimum(tl.fma(best - x, _STEPS / temperature, 0.5), _FURTHEST)
    return tl.maximum(TOP - distance.to(tl.int32), 0)


@triton.jit
def weight_of(key, min_p):
    """int64, the weight of a key, _ONE for TOP; 0 if its share of that is less than min_p."""
    weight = tl.exp2((key - TOP).to(tl.float32) * _STEP_IN_OCTAVES)
    return (tl.where(weight >= min_p, weight, 0.0) * _ONE).to(tl.int64)
