"""Random batches for the Triton attention, their attention in float64, and how far one is off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged

N_PAGES = 6000
ALLOWED = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 1e-2}
DTYPES = list(ALLOWED)


@dataclass(frozen=True)
class Case:
    """One layer of one step. Pages that no row lists hold what is no number."""

    q: Tensor
    k_pool: Tensor
    v_pool: Tensor
    ragged: Ragged
    heads: Heads


@dataclass(frozen=True)
class Sizes:
    """group: query heads that share a KV head."""

    n_kv_heads: int = 1
    group: int = 4
    head_dim: int = 64
    v_head_dim: int = 64


def ragged_of(rows: list[tuple[int, np.ndarray]]) -> Ragged:
    """rows: new tokens and pages of each."""
    row_starts = torch.tensor([0, *(n for n, _ in rows)]).cumsum(0)
    page_starts = torch.tensor([0, *(len(pages) for _, pages in rows)]).cumsum(0)
    pages = np.concatenate([np.zeros(0, np.int64), *(pages for _, pages in rows)])
    return Ragged(row_starts, torch.from_numpy(pages), page_starts)


def random_ragged(
    rng: np.random.Generator, longest_prefix: int, new_tokens: list[int], n_rows: int
) -> Ragged:
    """Rows with shuffled pages, of which some begin as an earlier row does, up to any page."""
    free = rng.permutation(N_PAGES).astype(np.int64)
    rows: list[tuple[int, np.ndarray]] = []
    for _ in range(n_rows):
        begins = rows[rng.integers(len(rows))][1] if rows and rng.random() < 0.5 else free[:0]
        begins = begins[: rng.integers(len(begins) + 1)]
        n_new = int(rng.choice(new_tokens))
        n_own = n_new + int(rng.integers(longest_prefix + 1) * rng.random())
        pages, free = np.concatenate([begins, free[:n_own]]), free[n_own:]
        rows.append((n_new, pages))
    return ragged_of(rows)


def case_of(
    ragged: Ragged, sizes: Sizes, dtype: torch.dtype, seed: int, **heads: float | int | bool | None
) -> Case:
    """heads: window, softcap, and whether there are sinks."""
    torch.manual_seed(seed)
    n_heads = sizes.n_kv_heads * sizes.group
    sinks = torch.linspace(-1, 3, n_heads) if heads.pop("sinks", False) else None
    used = torch.zeros(N_PAGES, dtype=torch.bool)
    used[ragged.pages] = True
    dims = sizes.head_dim, sizes.v_head_dim
    pools = [torch.randn(N_PAGES, sizes.n_kv_heads, d).to(dtype) for d in dims]
    for pool in pools:
        pool[~used] = torch.nan
    q = torch.randn(int(ragged.row_starts[-1]), n_heads, sizes.head_dim).to(dtype)
    return Case(q, *pools, ragged, Heads(sizes.head_dim**-0.5, sinks=sinks, **heads))


def exact(case: Case) -> Tensor:
    """In float64. [n_tokens, n_heads, v_head_dim]"""
    ragged, heads = case.ragged, case.heads
    group = case.q.shape[1] // case.k_pool.shape[1]
    found = []
    for row in range(ragged.n_rows):
        start, end = ragged.row_starts[row : row + 2].tolist()
        pages = ragged.pages[ragged.page_starts[row] : ragged.page_starts[row + 1]]
        q = case.q[start:end].double()
        k, v = (p[pages].double().repeat_interleave(group, 1) for p in (case.k_pool, case.v_pool))
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


def error(out: Tensor, reference: Tensor) -> float:
    """The largest of all tokens' and heads' ||out - reference|| / ||reference||."""
    off = (out.double().cpu() - reference).norm(dim=-1) / reference.norm(dim=-1)
    assert not off.isnan().any(), "what is no number"
    return float(off.max())
