"""The kernel that merges a token's partial outputs, by the log-sum-exp of their scores."""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def merge_parts(
    out, parts, part_lses, sinks, merged, part_starts,
    N_HEADS: tl.constexpr, V_HEAD_DIM: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_V: tl.constexpr,
    HAS_SINKS: tl.constexpr,
):  # fmt: skip
    """Grid: n_merged * n_heads. merged: the tokens, or -1 for none. The rest is as in
    `attend_items`. Flash-Decoding's reduction, online over blocks of BLOCK_S parts."""
    token = tl.load(merged + tl.program_id(0) // N_HEADS)
    if token < 0:
        return
    head = tl.program_id(0) % N_HEADS
    start, stop = tl.load(part_starts + token), tl.load(part_starts + token + 1)
    dim = tl.arange(0, BLOCK_V)
    acc = tl.zeros([BLOCK_V], tl.float32)
    top, total = float("-inf"), 0.0
    if HAS_SINKS:
        top, total = tl.load(sinks + head).to(tl.float32) * LOG2_E, 1.0
    for first in range(start, stop, BLOCK_S):
        part = first + tl.arange(0, BLOCK_S)
        at = part.to(tl.int64) * N_HEADS + head
        lse = tl.load(part_lses + at, mask=part < stop, other=float("-inf"))
        some = tl.load(
            parts + (at * V_HEAD_DIM)[:, None] + dim[None, :],
            mask=(part < stop)[:, None] & (dim < V_HEAD_DIM)[None, :],
            other=0.0,
        )
        new_top = tl.maximum(top, tl.max(lse, 0))
        pivot = tl.where(new_top == float("-inf"), 0.0, new_top)
        weight = tl.exp2(lse - pivot)
        shrink = tl.exp2(top - pivot)
        acc = acc * shrink + tl.sum(some * weight[:, None], 0)
        total = total * shrink + tl.sum(weight, 0)
        top = new_top
    at = out + (token.to(tl.int64) * N_HEADS + head) * V_HEAD_DIM + dim
    done = acc / tl.where(total == 0.0, 1.0, total)
    tl.store(at, done.to(out.dtype.element_ty), mask=dim < V_HEAD_DIM)
