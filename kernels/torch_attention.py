"""Attention over the paged pool with torch's own operations, on any device.

Rows that begin with the same pages attend to them together, once. Rows with one new token are
gathered into padded groups of similar length. Rows with few new tokens, such as the branches of a
tree of choices, attend to all their keys at once, under a mask. New tokens of longer rows attend to
each other causally, without a mask. A token's outputs from several parts are merged. KV heads are
never repeated: query heads that share one become more queries, or a broadcast dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged, check_shapes
from sgc.kernels.partial import Partial, add_sinks, attend_part, merge
from sgc.kernels.parts import Batch, Part, full_parts, window_parts

# From about here a shared prefix is worth another call and a merge in each layer (2 cores).
MIN_SHARED_PAGES = 32
MIN_SAVED_READS = 512


@dataclass(frozen=True, slots=True)
class Plan:
    """What the layers of a step share. longest: the longest context of the batch. Parts and masks
    of windowed layers are made on first use."""

    device: torch.device
    batch: Batch
    longest: int
    full: list[Part]
    windowed: dict[int, list[Part]] = field(default_factory=dict)
    masks: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict)

    def parts(self, window: int | None) -> list[Part]:
        if window is None or window >= self.longest:
            return self.full
        if window not in self.windowed:
            parts = window_parts(self.batch, window)
            self.windowed[window] = [part.to(self.device) for part in parts]
        return self.windowed[window]

    def mask(self, part: Part, dtype: torch.dtype) -> Tensor | None:
        """The mask to add to the part's scores."""
        if part.sees is None:
            return None
        key = id(part), dtype
        if key not in self.masks:
            mask = torch.zeros(part.sees.shape, dtype=dtype, device=part.sees.device)
            self.masks[key] = mask.masked_fill_(~part.sees, -torch.inf)
        return self.masks[key]


class TorchAttention:
    """min_pages, min_saved: when rows attend together to a shared prefix."""

    def __init__(
        self,
        min_pages: int = MIN_SHARED_PAGES,
        min_saved: int = MIN_SAVED_READS,
        device: torch.device | str = "cpu",
    ) -> None:
        self._min_pages, self._min_saved = min_pages, min_saved
        self._device = torch.device(device)

    def plan(self, ragged: Ragged) -> Plan:
        batch = Batch(ragged.row_starts.numpy(), ragged.pages.numpy(), ragged.page_starts.numpy())
        full = full_parts(batch, self._min_pages, self._min_saved)
        full = [part.to(self._device) for part in full]
        return Plan(self._device, batch, int(batch.n_context.max()), full)

    def attend(self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Plan, heads: Heads) -> Tensor:
        check_shapes(q, k_pool, v_pool)
        n_kv = k_pool.shape[1]
        grouped = q.view(len(q), n_kv, -1, q.shape[2])  # [n_tokens, n_kv_heads, group, head_dim]
        whole = _attend_all(grouped, k_pool, v_pool, plan, heads)
        out = whole[0] if heads.sinks is None else add_sinks(whole, heads.sinks.view(n_kv, -1))
        return out.reshape(q.shape[0], q.shape[1], v_pool.shape[2])


def _attend_all(q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Plan, heads: Heads) -> Partial:
    """The same as `_attend`, over all parts of the batch."""
    done: Partial | None = None
    for part in plan.parts(heads.window):
        if part.is_whole(len(q)):
            new = _attend(q, k_pool, v_pool, part, plan, heads)
            done = new if done is None else merge(done, new)
            continue
        at = part.tokens
        new = _attend(q[at], k_pool, v_pool, part, plan, heads)
        if done is None:
            lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
            done = q.new_empty(*q.shape[:3], v_pool.shape[2]), lse
        if not part.is_first:
            new = merge((done[0][at], done[1][at]), new)
        done[0][at], done[1][at] = new
    assert done is not None, "a batch without tokens"
    return done


def _attend(
    q: Tensor, k_pool: Tensor, v_pool: Tensor, part: Part, plan: Plan, heads: Heads
) -> Partial:
    """q: [n, n_kv_heads, group, head_dim], the part's tokens.

    Returns [n, n_kv_heads, group, v_head_dim] and [n, n_kv_heads, group].
    """
    b, n, n_kv, group = part.n_rows, part.n_queries, q.shape[1], q.shape[2]
    k, v = _gather(k_pool, part), _gather(v_pool, part)
    mask = plan.mask(part, q.dtype)
    if n == 1:
        return attend_part(q, k, v, mask=mask, scale=heads.scale, softcap=heads.softcap)
    q = q.view(b, n, n_kv, group, -1)
    if mask is None and not part.is_causal:  # a group's heads become more queries
        q = q.transpose(1, 2).reshape(b, n_kv, n * group, -1)
        out, lse = attend_part(q, k, v, scale=heads.scale, softcap=heads.softcap)
        out = out.view(b, n_kv, n, group, -1).transpose(1, 2)
        return out.flatten(0, 1), lse.view(b, n_kv, n, group).transpose(1, 2).flatten(0, 1)
    q = q.permute(0, 2, 3, 1, 4).flatten(0, 1)  # [b * n_kv, group, n, head_dim]
    k, v = (t.flatten(0, 1)[:, None].expand(-1, group, -1, -1) for t in (k, v))
    out, lse = attend_part(
        q, k, v, mask=mask, is_causal=part.is_causal, scale=heads.scale, softcap=heads.softcap
    )
    out = out.view(b, n_kv, group, n, -1).permute(0, 3, 1, 2, 4)
    return out.flatten(0, 1), lse.view(b, n_kv, group, n).permute(0, 3, 1, 2).flatten(0, 1)


def _gather(pool: Tensor, part: Part) -> Tensor:
    """[n_rows, n_kv_heads, n_keys, head_dim]"""
    taken = pool.flatten(1).index_select(0, part.pages)
    return taken.view(part.n_rows, -1, *pool.shape[1:]).transpose(1, 2)
