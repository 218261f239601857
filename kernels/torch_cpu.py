"""Attention over the paged pool with torch's own operations, for CPUs.

Rows with one new token are gathered into padded groups of similar length and attended
together; longer rows one by one. KV heads are never repeated: the query heads that share one
are the queries, or a broadcast dimension, of one attention call.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from sgc.kernels.interface import Heads, Ragged, check_shapes, is_visible

MAX_GROUP_TOKENS = 32768  # of context, padding included, gathered at once


@dataclass(frozen=True, slots=True)
class _Group:
    """Single-token rows. tokens: [n]; pages: [n, longest]; lengths: [n]."""

    tokens: torch.Tensor
    pages: torch.Tensor
    lengths: torch.Tensor
    masks: dict[int | None, torch.Tensor | None] = field(default_factory=dict)

    def mask(self, window: int | None) -> torch.Tensor | None:
        """[n, 1, 1, longest], True where a key is seen; None if all are."""
        if window not in self.masks:
            last = (self.lengths - 1)[:, None, None, None]
            mask = is_visible(last, torch.arange(self.pages.shape[1]), window)
            self.masks[window] = None if bool(mask.all()) else mask
        return self.masks[window]


@dataclass(frozen=True, slots=True)
class _Run:
    """A row with several new tokens, start to end. pages: [context]."""

    start: int
    end: int
    pages: torch.Tensor
    masks: dict[int | None, torch.Tensor] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether nothing comes before the new tokens."""
        return self.end - self.start == len(self.pages)

    def mask(self, window: int | None) -> torch.Tensor:
        """[n_new, context], True where a key is seen."""
        if window not in self.masks:
            n, c = self.end - self.start, len(self.pages)
            new = torch.arange(c - n, c)[:, None]
            self.masks[window] = is_visible(new, torch.arange(c), window)
        return self.masks[window]


@dataclass(frozen=True, slots=True)
class Plan:
    groups: tuple[_Group, ...]
    runs: tuple[_Run, ...]


class TorchCpuAttention:
    def plan(self, ragged: Ragged) -> Plan:
        n_new = ragged.row_starts.diff()
        singles = torch.nonzero(n_new == 1).flatten()
        runs = [
            _Run(
                int(ragged.row_starts[row]),
                int(ragged.row_starts[row + 1]),
                ragged.pages[ragged.page_starts[row] : ragged.page_starts[row + 1]],
            )
            for row in torch.nonzero(n_new > 1).flatten().tolist()
        ]
        return Plan(tuple(_groups(ragged, singles)), tuple(runs))

    def attend(
        self,
        q: torch.Tensor,
        k_pool: torch.Tensor,
        v_pool: torch.Tensor,
        plan: Plan,
        heads: Heads,
    ) -> torch.Tensor:
        check_shapes(q, k_pool, v_pool)
        out = q.new_empty(q.shape[0], q.shape[1], v_pool.shape[2])
        for group in plan.groups:
            out[group.tokens] = _attend_group(q[group.tokens], k_pool, v_pool, group, heads)
        for run in plan.runs:
            out[run.start : run.end] = _attend_run(
                q[run.start : run.end], k_pool, v_pool, run, heads
            )
        return out


def _groups(ragged: Ragged, singles: torch.Tensor) -> list[_Group]:
    """Cuts single-token rows, sorted by length, where padding or size would get too large."""
    lengths = ragged.page_starts.diff()[singles]
    order = lengths.argsort(descending=True)
    ordered = lengths[order].tolist()
    groups: list[_Group] = []
    at = 0
    while at < len(ordered):
        longest = ordered[at]
        end = at + 1
        while (
            end < len(ordered)
            and 2 * ordered[end] >= longest
            and (end + 1 - at) * longest <= MAX_GROUP_TOKENS
        ):
            end += 1
        rows = singles[order[at:end]]
        groups.append(_group(ragged, rows, lengths[order[at:end]], longest))
        at = end
    return groups


def _group(ragged: Ragged, rows: torch.Tensor, lengths: torch.Tensor, longest: int) -> _Group:
    within = torch.arange(longest)[None, :]
    # Padding points at the row's own first page: what it holds is masked, but must be finite.
    within = torch.where(within < lengths[:, None], within, 0)
    pages = ragged.pages[ragged.page_starts[rows][:, None] + within]
    return _Group(ragged.row_starts[rows], pages, lengths)


def _attend_group(
    q: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor, group: _Group, heads: Heads
) -> torch.Tensor:
    n, n_heads, head_dim = q.shape
    n_kv = k_pool.shape[1]
    queries = q.reshape(n, n_kv, n_heads // n_kv, head_dim)
    k = _gather(k_pool, group.pages).transpose(1, 2)  # [n, n_kv, longest, head_dim]
    v = _gather(v_pool, group.pages).transpose(1, 2)
    sinks = None if heads.sinks is None else heads.sinks.reshape(1, n_kv, n_heads // n_kv, 1)
    out = _attention(queries, k, v, group.mask(heads.window), False, heads, sinks)
    return out.reshape(n, n_heads, v.shape[-1])


def _attend_run(
    q: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor, run: _Run, heads: Heads
) -> torch.Tensor:
    n, n_heads, head_dim = q.shape
    n_kv, group = k_pool.shape[1], n_heads // k_pool.shape[1]
    queries = q.reshape(n, n_kv, group, head_dim).permute(1, 2, 0, 3)
    k = _gather(k_pool, run.pages).transpose(0, 1)[:, None].expand(-1, group, -1, -1)
    v = _gather(v_pool, run.pages).transpose(0, 1)[:, None].expand(-1, group, -1, -1)
    sinks = None if heads.sinks is None else heads.sinks.reshape(n_kv, group, 1, 1)
    is_plain = run.is_whole and heads.window is None and heads.softcap is None and sinks is None
    mask = None if is_plain else run.mask(heads.window)
    out = _attention(queries, k, v, mask, is_plain, heads, sinks)
    return out.permute(2, 0, 1, 3).reshape(n, n_heads, v.shape[-1])


def _gather(pool: torch.Tensor, pages: torch.Tensor) -> torch.Tensor:
    """[*pages.shape, n_kv_heads, head_dim]"""
    taken = pool.flatten(1).index_select(0, pages.flatten())
    return taken.view(*pages.shape, *pool.shape[1:])


def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    heads: Heads,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q: [b, h, n, head_dim]; k, v: [b, h, c, head_dim]; sinks broadcast to [b, h, n, 1]."""
    if heads.softcap is None and sinks is None:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, scale=heads.scale
        )
    scores = (q @ k.transpose(-1, -2)).float() * heads.scale
    if heads.softcap is not None:
        scores = heads.softcap * torch.tanh(scores / heads.softcap)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if sinks is not None:
        sink_scores = sinks.float().expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, sink_scores], dim=-1)
    weights = scores.softmax(-1)[..., : k.shape[-2]]
    return weights.to(v.dtype) @ v
