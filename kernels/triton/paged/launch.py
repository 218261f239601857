"""Launches the attention kernels over items that lie on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sgc.kernels.interface import Heads
from sgc.kernels.triton.interpreter import is_interpreted
from sgc.kernels.triton.paged.attend_kernel import attend_items
from sgc.kernels.triton.paged.blocks import Shape, blocks, few_rows, many_rows, padded
from sgc.kernels.triton.paged.items import ITEM_WIDTH
from sgc.kernels.triton.paged.merge_kernel import merge_parts

MERGED_AT_ONCE = 16  # parts, of up to 256 numbers each
MERGE_WARPS = 4


@dataclass(frozen=True, slots=True)
class DeviceItems:
    """`items.Items` on the device, flat. n_parts: how many partial outputs there may be."""

    n_parts: int
    few: Tensor
    many: Tensor
    tokens: Tensor
    contexts: Tensor
    part_starts: Tensor
    merged: Tensor


def has_two_loops(n_rows: int, shape: Shape, has_window: bool) -> bool:
    """Whether keys that all of an item's tokens see are worth a loop without a mask."""
    return n_rows > few_rows(shape) and not has_window


def attend(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    pages: Tensor,
    items: DeviceItems,
    heads: Heads,
    shape: Shape,
) -> Tensor:
    """Shapes as in `interface.PagedAttention.attend`. Waits for nothing on the device; its launches
    depend only on the lengths of `items`."""
    assert heads.scale > 0
    n_tokens, n_heads, v_head_dim = len(q), shape.n_heads, shape.v_head_dim
    out = q.new_empty(n_tokens, n_heads, v_head_dim)
    parts = q.new_empty(items.n_parts, n_heads, v_head_dim, dtype=torch.float32)
    lses = q.new_empty(items.n_parts, n_heads, dtype=torch.float32)
    many, few = many_rows(shape), few_rows(shape)
    for n_rows, which in ((many, items.many), (few, items.few)):
        _attend(q, k_pool, v_pool, out, parts, lses, pages, which, n_rows, items, heads, shape)
    if len(items.merged):
        merge_parts[(len(items.merged) * n_heads,)](
            out,
            parts,
            lses,
            lses if heads.sinks is None else heads.sinks,
            items.merged,
            items.part_starts,
            N_HEADS=n_heads,
            V_HEAD_DIM=v_head_dim,
            BLOCK_S=MERGED_AT_ONCE,
            BLOCK_V=padded(v_head_dim),
            HAS_SINKS=heads.sinks is not None,
            num_warps=MERGE_WARPS,
        )
    return out


def _attend(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    out: Tensor,
    parts: Tensor,
    lses: Tensor,
    pages: Tensor,
    which: Tensor,
    n_rows: int,
    items: DeviceItems,
    heads: Heads,
    shape: Shape,
) -> None:
    """Items of one size of tile. which: their records, flat."""
    if not len(which):
        return
    block = blocks(n_rows, shape)
    attend_items[(len(which) // ITEM_WIDTH * shape.n_kv_heads,)](
        q,
        k_pool,
        v_pool,
        out,
        parts,
        lses,
        lses if heads.sinks is None else heads.sinks,
        which,
        items.tokens,
        items.contexts,
        items.part_starts,
        pages,
        heads.scale,
        heads.softcap or 0.0,
        heads.window or 0,
        q.stride(0),
        q.stride(1),
        k_pool.stride(0),
        k_pool.stride(1),
        v_pool.stride(0),
        v_pool.stride(1),
        N_KV_HEADS=shape.n_kv_heads,
        GROUP=shape.group,
        HEAD_DIM=shape.head_dim,
        V_HEAD_DIM=shape.v_head_dim,
        BLOCK_M=n_rows,
        BLOCK_N=block.n_keys,
        BLOCK_D=padded(shape.head_dim),
        BLOCK_V=padded(shape.v_head_dim),
        HAS_WINDOW=heads.window is not None,
        HAS_SOFTCAP=heads.softcap is not None,
        HAS_SINKS=heads.sinks is not None,
        TWO_LOOPS=has_two_loops(n_rows, shape, heads.window is not None),
        UPCAST=is_interpreted() and q.dtype == torch.bfloat16,
        num_warps=block.n_warps,
        num_stages=block.n_stages,
    )
