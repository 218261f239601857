"""Logits as whole numbers in the same order, and their weights as fixed-point numbers, whose sums
are exact in any order."""

from __future__ import annotations

import triton
import triton.language as tl

# A weight is at most 1, a vocabulary at most 2**19 tokens: their sum stays under 2**62.
_ONE = tl.constexpr(float(1 << 43))
_LAST_ID = tl.constexpr((1 << 31) - 1)
_FAULT = tl.constexpr((1 << 32) - 1)  # a NaN or an infinity: greater than each number's key
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
def key_of(x, LOW: tl.constexpr):
    """uint32, ordered as x. LOW: how many of x's last bits are 0 by its dtype; they are dropped."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) | -2147483648)
    return ordered.to(tl.uint32, bitcast=True) >> LOW


@triton.jit
def number_of(key, LOW: tl.constexpr):
    """The number that has a key, which may be an int64."""
    ordered = key.to(tl.int64) << LOW
    bits = tl.where(
        ordered >= 2147483648, ordered - 2147483648, (4294967295 - ordered) >> LOW << LOW
    )
    return bits.to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit
def packed_best(x, raw, column):
    """int64, the greatest for the greatest x, of equals for the least column; a raw NaN or infinity
    is greater than all."""
    key = key_of(x, 0).to(tl.int64)
    is_fault = (raw != raw) | (raw == float("inf"))
    return (tl.where(is_fault, _FAULT, key) << 31) + (_LAST_ID - column)


@triton.jit
def best_number(packed):
    return number_of(packed >> 31, 0)


@triton.jit
def best_id(packed):
    """-1 if the best is no finite number."""
    key = packed >> 31
    is_finite = (key < _INFINITE) & (key > _MINUS_INFINITE)
    return tl.where(is_finite, _LAST_ID - (packed & _LAST_ID), -1)


@triton.jit
def weight_of(x, best, temperature, min_p):
    """int64: exp((x - best) / temperature), or 0 if that is less than min_p."""
    weight = tl.exp((x - best) / temperature)
    return (tl.where(weight >= min_p, weight, 0.0) * _ONE).to(tl.int64)
