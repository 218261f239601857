"""The kernel that attends: one work item and one KV head a program.

An item is some tokens of one or more rows, and a range of keys in the pages of each row. The kernel
knows nothing of decode, extend or shared prefixes: `items.py` makes items of all three. The keys
that a token sees follow from its context's length alone. Softmax is online, in float32 and base 2
(FlashAttention-2, section 3.1; Flash-Decoding for the split along keys).
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def scores_of(q, k, inner, HAS_SOFTCAP: tl.constexpr, UPCAST: tl.constexpr):
    """Scores, to be multiplied by `outer`. UPCAST: the interpreter cannot multiply in bfloat16."""
    if UPCAST:
        q, k = q.to(tl.float32), k.to(tl.float32)
    s = tl.dot(q, tl.trans(k), input_precision="ieee")
    if HAS_SOFTCAP:  # tanh(x) = 1 - 2 / (1 + exp(2x)), which is right at both ends
        s = 1.0 - 2.0 / (1.0 + tl.exp2(s * inner))
    return s


@triton.jit
def weighted(p, v, acc, UPCAST: tl.constexpr):
    p = p.to(v.dtype)
    if UPCAST:
        p, v = p.to(tl.float32), v.to(tl.float32)
    return tl.dot(p, v, acc, input_precision="ieee")


@triton.jit
def load_heads(base, page, stride, dim, DIM: tl.constexpr, BLOCK_DIM: tl.constexpr):
    """[BLOCK_N, BLOCK_DIM]: one head of some pages."""
    at = base + page.to(tl.int64)[:, None] * stride + dim[None, :]
    if DIM == BLOCK_DIM:
        return tl.load(at)
    return tl.load(at, mask=dim[None, :] < DIM, other=0.0)


@triton.jit
def attend_keys(
    acc, top, total, q, context, k_base, v_base, pages, start, stop, end,
    inner, outer, window, k_page_stride, v_page_stride,
    MASKED: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_SOFTCAP: tl.constexpr,
    HEAD_DIM: tl.constexpr, V_HEAD_DIM: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Attends to keys start … stop - 1. Past `end`, the last key is read again, and masked.

    inner, outer: the factors of scores inside the soft cap, and at the end (greater than 0).

    Page numbers are loaded a round before K and V, so that all stages of the pipeline hold K and V.
    """
    dim, v_dim = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_V)
    next_key = tl.minimum(start + tl.arange(0, BLOCK_N), end - 1)
    page = tl.load(pages + next_key, mask=next_key >= 0, other=0)
    for first in range(start, stop, BLOCK_N):
        key = first + tl.arange(0, BLOCK_N)
        k = load_heads(k_base, page, k_page_stride, dim, HEAD_DIM, BLOCK_D)
        s = scores_of(q, k, inner, HAS_SOFTCAP, UPCAST)
        if MASKED:
            sees = (key[None, :] < context[:, None]) & (key[None, :] < end)
            if HAS_WINDOW:
                sees = sees & (key[None, :] >= context[:, None] - window)
            s = tl.where(sees, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1) * outer)
        # If a token sees no key yet, its top is -inf, which must not be subtracted from itself.
        pivot = tl.where(new_top == float("-inf"), 0.0, new_top) if MASKED else new_top
        p = tl.exp2(s * outer - pivot[:, None])
        shrink = tl.exp2(top - pivot)
        total = total * shrink + tl.sum(p, 1)
        v = load_heads(v_base, page, v_page_stride, v_dim, V_HEAD_DIM, BLOCK_V)
        acc = weighted(p, v, acc * shrink[:, None], UPCAST)
        top = new_top
        page = tl.load(pages + tl.minimum(key + BLOCK_N, end - 1))
    return acc, top, total


@triton.jit(do_not_specialize=["window"])
def attend_items(
    q, k_pool, v_pool, out, parts, part_lses, sinks,
    items, tokens, contexts, part_starts, pages,
    scale, softcap, window,
    q_token_stride, q_head_stride, k_page_stride, k_head_stride, v_page_stride, v_head_stride,
    N_KV_HEADS: tl.constexpr, GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr, V_HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    HAS_WINDOW: tl.constexpr, HAS_SOFTCAP: tl.constexpr, HAS_SINKS: tl.constexpr,
    TWO_LOOPS: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Grid: n_items * n_kv_heads, heads of one item side by side, for their keys are neighbours.

    items: [n_items, 6] int32: where its tokens are listed, how many, where its pages begin, its
    first key, the end of its keys, and which of its tokens' partial outputs it makes (-1: it makes
    the whole output). parts: [n_parts, n_heads, v_head_dim] float32, part_lses: [n_parts, n_heads]
    in base 2; a token's begin at its part_starts. TWO_LOOPS: keys that all of the item's tokens see
    are attended to without a mask, before the others.
    """
    item = items + (tl.program_id(0) // N_KV_HEADS) * 6
    kv_head = tl.program_id(0) % N_KV_HEADS
    first, n_tokens = tl.load(item), tl.load(item + 1)
    if n_tokens == 0:
        return
    row_pages = pages + tl.load(item + 2)
    begin, end, ordinal = tl.load(item + 3), tl.load(item + 4), tl.load(item + 5)

    m = tl.arange(0, BLOCK_M)
    is_used = m < n_tokens * GROUP
    token = tl.load(tokens + first + m // GROUP, mask=is_used, other=0)
    context = tl.load(contexts + token, mask=is_used, other=0)
    head = kv_head * GROUP + m % GROUP
    dim = tl.arange(0, BLOCK_D)
    q_at = q + token.to(tl.int64) * q_token_stride + head * q_head_stride
    queries = tl.load(
        q_at[:, None] + dim[None, :], mask=is_used[:, None] & (dim[None, :] < HEAD_DIM), other=0.0
    )
    k_base = k_pool + kv_head * k_head_stride
    v_base = v_pool + kv_head * v_head_stride

    acc = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    outer = scale * LOG2_E
    inner = 0.0
    if HAS_SOFTCAP:
        inner, outer = scale / softcap * 2.0 * LOG2_E, softcap * LOG2_E
    masked_from = begin
    if TWO_LOOPS:
        seen_by_all = tl.minimum(tl.min(tl.where(is_used, context, end)), end)
        masked_from = begin + tl.maximum(seen_by_all - begin, 0) // BLOCK_N * BLOCK_N
        acc, top, total = attend_keys(
            acc, top, total, queries, context, k_base, v_base, row_pages, begin, masked_from, end,
            inner, outer, window, k_page_stride, v_page_stride,
            False, HAS_WINDOW, HAS_SOFTCAP, HEAD_DIM, V_HEAD_DIM, BLOCK_N, BLOCK_D, BLOCK_V, UPCAST,
        )  # fmt: skip
    acc, top, total = attend_keys(
        acc, top, total, queries, context, k_base, v_base, row_pages, masked_from, end, end,
        inner, outer, window, k_page_stride, v_page_stride,
        True, HAS_WINDOW, HAS_SOFTCAP, HEAD_DIM, V_HEAD_DIM, BLOCK_N, BLOCK_D, BLOCK_V, UPCAST,
    )  # fmt: skip

    v_dim = tl.arange(0, BLOCK_V)
    is_stored = is_used[:, None] & (v_dim[None, :] < V_HEAD_DIM)
    n_heads = N_KV_HEADS * GROUP
    if ordinal < 0:
        if HAS_SINKS:
            sink = tl.load(sinks + head).to(tl.float32) * LOG2_E
            new_top = tl.maximum(top, sink)
            shrink = tl.exp2(top - new_top)
            total = total * shrink + tl.exp2(sink - new_top)
            acc = acc * shrink[:, None]
        done = acc / tl.where(total == 0.0, 1.0, total)[:, None]
        at = (token.to(tl.int64) * n_heads + head) * V_HEAD_DIM
        tl.store(out + at[:, None] + v_dim[None, :], done.to(out.dtype.element_ty), mask=is_stored)
    else:
        # If a token sees no key, its total is 0, and its log-sum-exp is -inf, like the top.
        total = tl.where(total == 0.0, 1.0, total)
        part = (tl.load(part_starts + token, mask=is_used, other=0) + ordinal).to(tl.int64)
        at = part * n_heads + head
        done = acc / total[:, None]
        tl.store(parts + (at * V_HEAD_DIM)[:, None] + v_dim[None, :], done, mask=is_stored)
        tl.store(part_lses + at, top + tl.log2(total), mask=is_used)
