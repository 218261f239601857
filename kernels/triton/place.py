"""Takes a layer's product of Q, K and V apart: norms and rotates heads, and writes K and V into
their pages, in one launch (rotary embeddings: Su et al., 2021)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sgc.kernels.layers import HeadLayout, Norm, Rope
from sgc.kernels.triton.norms import scaled
from sgc.kernels.triton.rounding import rounded

_TILE, _WARPS = 1024, 4  # numbers a program places: some heads of one token


def rope_table(rope: Rope, n_positions: int, device: torch.device | str) -> Tensor:
    """[n_positions, n_rotated], float32: the scaled cosines of each position's pairs, then the
    sines. They are made on the host, so that they are the same for every device."""
    positions = torch.arange(n_positions, dtype=torch.float32)
    angles = positions[:, None] * rope.inverse.to("cpu", torch.float32)
    return torch.cat((angles.cos() * rope.scale, angles.sin() * rope.scale), 1).to(device)


def place(
    qkv: Tensor,
    layout: HeadLayout,
    cos_sin: Tensor | None,
    positions: Tensor,
    slots: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
) -> Tensor:
    """Returns q, normed and rotated: [n, n_heads, head_dim]; writes k, so too, and v to the pools.

    qkv: [n, layout.width], rows with any stride. cos_sin: `rope_table` of the layout's rope, or
    None if it has none. positions, slots: [n], int64. k_pool, v_pool: [n_pages, n_kv_heads,
    head_dim], of qkv's dtype. Cosines, sines and all products are rounded to that dtype.

    Tokens with negative slots are padding: nothing is read or written for them, and their q is 0.
    A position that the table does not have gives NaN in q and k; a slot beyond the pool gives NaN
    in q, and nothing is written. Raises AssertionError for shapes and dtypes that do not fit.
    """
    n, rope = qkv.shape[0], layout.rope
    _check(qkv, layout, cos_sin, positions, slots, k_pool, v_pool)
    q = torch.empty((n, layout.n_heads, layout.head_dim), dtype=qkv.dtype, device=qkv.device)
    if n == 0:
        return q
    block = triton.next_power_of_2(layout.head_dim)
    n_at_once = max(1, _TILE // block)
    n_q, n_kv = (triton.cdiv(n_of, n_at_once) for n_of in (layout.n_heads, layout.n_kv_heads))
    _place[(n, n_q + 2 * n_kv)](
        qkv,
        q,
        k_pool,
        v_pool,
        cos_sin,
        positions,
        slots,
        _weight(layout.q_norm),
        _weight(layout.k_norm),
        0.0 if layout.q_norm is None else layout.q_norm.eps,
        0.0 if layout.k_norm is None else layout.k_norm.eps,
        len(k_pool),
        0 if cos_sin is None else len(cos_sin),
        qkv.stride(0),
        k_pool.stride(0),
        k_pool.stride(1),
        v_pool.stride(0),
        v_pool.stride(1),
        N_HEADS=layout.n_heads,
        N_KV_HEADS=layout.n_kv_heads,
        HEAD_DIM=layout.head_dim,
        N_ROTATED=0 if rope is None else rope.n_rotated,
        IS_INTERLEAVED=rope is not None and rope.is_interleaved,
        Q_NORM=layout.q_norm is not None,
        K_NORM=layout.k_norm is not None,
        Q_IS_WIDE=_is_wide(layout.q_norm, qkv),
        K_IS_WIDE=_is_wide(layout.k_norm, qkv),
        HEADS=n_at_once,
        BLOCK=block,
        num_warps=_WARPS,
    )
    return q


def _weight(norm: Norm | None) -> Tensor | None:
    return None if norm is None else norm.weight


def _is_wide(norm: Norm | None, qkv: Tensor) -> bool:
    weight = _weight(norm)
    return weight is not None and weight.dtype != qkv.dtype


def _check(
    qkv: Tensor,
    layout: HeadLayout,
    cos_sin: Tensor | None,
    positions: Tensor,
    slots: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
) -> None:
    n = qkv.shape[0]
    assert qkv.shape == (n, layout.width), "qkv is no [n, width]"
    assert qkv.stride(1) == 1, "qkv's rows are not contiguous"
    for pool in (k_pool, v_pool):
        assert pool.shape[1:] == (layout.n_kv_heads, layout.head_dim), "a pool of other heads"
        assert pool.dtype == qkv.dtype, "a pool differs from qkv in dtype"
        assert pool.stride(2) == 1, "a pool's heads are not contiguous"
    assert len(k_pool) == len(v_pool), "k and v differ in pages"
    for each in (positions, slots):
        assert each.shape == (n,), "positions or slots are no [n]"
        assert each.dtype == torch.int64, "positions or slots are no int64"
        assert each.is_contiguous(), "positions or slots are not contiguous"
    for norm in (layout.q_norm, layout.k_norm):
        is_rms = norm is None or (norm.bias is None and not norm.is_layer_norm)
        assert is_rms, "heads have RMS norms only"
        weight = _weight(norm)
        if weight is not None:
            assert weight.shape == (layout.head_dim,), "a head's norm is as wide as a head"
            assert weight.dtype in (qkv.dtype, torch.float32), "a norm of another dtype"
    assert (layout.rope is None) == (cos_sin is None), "rope and its table come together"
    if layout.rope is not None and cos_sin is not None:
        assert layout.rope.n_rotated <= layout.head_dim, "more dimensions turn than there are"
        assert cos_sin.ndim == 2, "no rope_table"
        assert cos_sin.shape[1] == layout.rope.n_rotated, "a table of another rope"
        assert cos_sin.dtype == torch.float32, "no rope_table"
        assert cos_sin.is_contiguous(), "no rope_table"


@triton.jit
def _place(
    qkv,
    q,
    k_pool,
    v_pool,
    cos_sin,
    positions,
    slots,
    q_weight,
    k_weight,
    q_eps,
    k_eps,
    n_pages,
    n_positions,
    qkv_stride,
    k_page_stride,
    k_head_stride,
    v_page_stride,
    v_head_stride,
    N_HEADS: tl.constexpr,
    N_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    N_ROTATED: tl.constexpr,
    IS_INTERLEAVED: tl.constexpr,
    Q_NORM: tl.constexpr,
    K_NORM: tl.constexpr,
    Q_IS_WIDE: tl.constexpr,
    K_IS_WIDE: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A program places HEADS heads of one token, which are all of Q, of K or of V."""
    token = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    N_Q: tl.constexpr = (N_HEADS + HEADS - 1) // HEADS
    N_KV: tl.constexpr = (N_KV_HEADS + HEADS - 1) // HEADS
    one = tl.arange(0, 1)[:, None]  # [1, 1]: the interpreter's masks cannot mix in scalars
    slot = tl.load(slots + token + one)
    position = tl.load(positions + token + one)
    has_place = (slot >= 0) & (slot < n_pages)
    row = qkv + token * qkv_stride
    of_group = tl.arange(0, HEADS)[:, None]
    if group < N_Q:
        head = group * HEADS + of_group
        is_head = head < N_HEADS
        placed = _placed(
            row, head, is_head & (slot >= 0), cos_sin, position, n_positions, q_weight, q_eps,
            HEAD_DIM, N_ROTATED, IS_INTERLEAVED, Q_NORM, Q_IS_WIDE, BLOCK,
        )  # fmt: skip
        placed = tl.where(slot < n_pages, placed.to(tl.float32), float("nan"))
        dimension = tl.arange(0, BLOCK)[None, :]
        at = q + (token * N_HEADS + head) * HEAD_DIM + dimension
        tl.store(at, placed, mask=is_head & (dimension < HEAD_DIM))
    elif group < N_Q + N_KV:
        head = (group - N_Q) * HEADS + of_group
        is_head = (head < N_KV_HEADS) & has_place
        placed = _placed(
            row + N_HEADS * HEAD_DIM, head, is_head, cos_sin, position, n_positions, k_weight,
            k_eps, HEAD_DIM, N_ROTATED, IS_INTERLEAVED, K_NORM, K_IS_WIDE, BLOCK,
        )  # fmt: skip
        dimension = tl.arange(0, BLOCK)[None, :]
        at = k_pool + slot * k_page_stride + head.to(tl.int64) * k_head_stride + dimension
        tl.store(at, placed, mask=is_head & (dimension < HEAD_DIM))
    else:
        head = (group - N_Q - N_KV) * HEADS + of_group
        dimension = tl.arange(0, BLOCK)[None, :]
        is_in = (head < N_KV_HEADS) & has_place & (dimension < HEAD_DIM)
        from_at = row + (N_HEADS + N_KV_HEADS + head) * HEAD_DIM + dimension
        at = v_pool + slot * v_page_stride + head.to(tl.int64) * v_head_stride + dimension
        tl.store(at, tl.load(from_at, mask=is_in), mask=is_in)


@triton.jit
def _placed(
    row,
    head,
    is_head,
    cos_sin,
    position,
    n_positions,
    weight,
    eps,
    HEAD_DIM: tl.constexpr,
    N_ROTATED: tl.constexpr,
    IS_INTERLEAVED: tl.constexpr,
    HAS_NORM: tl.constexpr,
    IS_WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Heads, normed and rotated: [HEADS, BLOCK]. Heads that do not exist are 0."""
    dtype: tl.constexpr = row.dtype.element_ty
    dimension = tl.arange(0, BLOCK)[None, :]
    is_in = is_head & (dimension < HEAD_DIM)
    value = tl.load(row + head * HEAD_DIM + dimension, mask=is_in, other=0.0)
    if HAS_NORM:
        wide = value.to(tl.float32)
        is_dimension = dimension < HEAD_DIM
        scale = tl.rsqrt(tl.sum(wide * wide, 1, keep_dims=True) / HEAD_DIM + eps)
        value = scaled(wide, scale, dimension, is_dimension, weight, dtype, IS_WIDE)
    if N_ROTATED > 0:
        HALF: tl.constexpr = N_ROTATED // 2
        if IS_INTERLEAVED:
            is_first = dimension % 2 == 0
            pair, other = dimension // 2, dimension ^ 1
        else:
            is_first = dimension < HALF
            pair = tl.where(is_first, dimension, dimension - HALF)
            other = tl.where(is_first, dimension + HALF, dimension - HALF)
        turns = dimension < N_ROTATED
        across = tl.load(row + head * HEAD_DIM + other, mask=is_head & turns, other=0.0)
        if HAS_NORM:
            across = scaled(across.to(tl.float32), scale, other, turns, weight, dtype, IS_WIDE)
        has_position = (position >= 0) & (position < n_positions)
        at = cos_sin + position * N_ROTATED + pair
        cos = tl.load(at, mask=turns & has_position, other=float("nan"))
        sin = tl.load(at + HALF, mask=turns & has_position, other=float("nan"))
        across = tl.where(is_first, -across.to(tl.float32), across.to(tl.float32))
        along = _product(value.to(tl.float32), cos, dtype) + _product(across, sin, dtype)
        value = tl.where(turns & is_head, rounded(along, dtype), value)
    return value


@triton.jit
def _product(number, factor, dtype: tl.constexpr):
    """Float32, but factor and product are rounded to dtype, as a model's own operations do."""
    factor = rounded(factor, dtype).to(tl.float32)
    return rounded(number * factor, dtype).to(tl.float32)
