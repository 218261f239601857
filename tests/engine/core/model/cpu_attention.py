"""What the tests of the native attention share: random batches, and their attention in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged

N_PAGES = 3000


@dataclass
class Case:
    """One layer of one step. Pages that no row lists hold what is no number."""

    q: Tensor
    k_pool: Tensor
    v_pool: Tensor
    ragged: Ragged
    heads: Heads
    deterministic: bool


def ragged_of(rows: list[tuple[int, np.ndarray]]) -> Ragged:
    """rows: new tokens and pages of each."""
    n_new, pages = [n for n, _ in rows], [p for _, p in rows]
    row_starts = torch.tensor([0, *n_new]).cumsum(0)
    page_starts = torch.tensor([0, *map(len, pages)]).cumsum(0)
    return Ragged(row_starts, torch.from_numpy(np.concatenate(pages)), page_starts)


def random_ragged(rng: np.random.Generator, longest: int) -> Ragged:
    """Rows that begin as a document or as an earlier row does, up to any page, and go on alone.
    Some rows' new tokens are part of what others begin with."""
    free = rng.permutation(N_PAGES).astype(np.int64)
    document, free = free[:500], free[500:]
    rows: list[tuple[int, np.ndarray]] = []
    for _ in range(int(rng.integers(1, 10))):
        start = [document, free[:0], rows[rng.integers(len(rows))][1] if rows else document]
        before = start[rng.integers(3)]
        before = before[: rng.integers(len(before) + 1)]
        n_own = int(rng.integers(1, longest))
        pages, free = np.concatenate([before, free[:n_own]]), free[n_own:]
        n_new = rng.choice([1, 1, 1, 2, 7, n_own, min(len(pages), 70)])
        rows.append((min(int(n_new), len(pages)), pages))
    return ragged_of(rows)


def random_case(seed: int, dtype: torch.dtype, longest: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    ragged = random_ragged(rng, longest or int(rng.choice([5, 60, 250])))
    n_tokens = int(ragged.row_starts[-1])
    n_kv, group = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 7, 8, 16]))
    head_dim = int(rng.choice([16, 48, 64, 80, 96, 128, 256, 33]))
    if n_tokens > 100:
        group, head_dim = min(group, 3), min(head_dim, 80)
    v_head_dim = head_dim if rng.random() < 0.7 else int(rng.choice([16, 56, 200, 7]))
    heads = Heads(
        scale=head_dim**-0.5,
        window=None if rng.random() < 0.6 else int(rng.choice([1, 5, 64, 90])),
        softcap=None if rng.random() < 0.7 else 2.0,
        sinks=None if rng.random() < 0.7 else torch.linspace(-1, 2, n_kv * group),
    )
    torch.manual_seed(seed)
    used = torch.zeros(N_PAGES, dtype=torch.bool)
    used[ragged.pages] = True
    pools = [torch.randn(N_PAGES, n_kv, d).to(dtype) for d in (head_dim, v_head_dim)]
    for pool in pools:
        pool[~used] = torch.nan
    q = torch.randn(n_tokens, n_kv * group, head_dim).to(dtype)
    return Case(q, pools[0], pools[1], ragged, heads, bool(rng.random() < 0.5))


def exact(case: Case) -> Tensor:
    """In float64. [n_tokens, n_heads, v_head_dim]"""
    ragged, heads = case.ragged, case.heads
    group = case.q.shape[1] // case.k_pool.shape[1]
    found = []
    for row in range(ragged.n_rows):
        start, end = ragged.row_starts[row : row + 2].tolist()
        pages = ragged.pages[ragged.page_starts[row] : ragged.page_starts[row + 1]]
        q = case.q[start:end].double()
        k, v = (
            pool[pages].double().repeat_interleave(group, 1) for pool in (case.k_pool, case.v_pool)
        )
        scores = torch.einsum("nhd,chd->hnc", q, k) * heads.scale
        if heads.softcap is not None:
            scores = heads.softcap * torch.tanh(scores / heads.softcap)
        key = torch.arange(len(pages))
        last = key[len(pages) - len(q) :, None]
        sees = (key <= last) & (key > last - (heads.window or len(pages)))
        scores = scores.masked_fill(~sees, -torch.inf)
        if heads.sinks is not None:
            sinks = heads.sinks.double()[:, None, None].expand(-1, len(q), 1)
            scores = torch.cat([scores, sinks], -1)
        weights = scores.softmax(-1)[..., : len(pages)]
        found.append(torch.einsum("hnc,chd->nhd", weights, v))
    return torch.cat(found)
