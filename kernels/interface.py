"""The interface of attention backends over a paged pool. A page is one token's K and V.

`torch_attention.py`, `cpu/`, `triton/` and `flashinfer/` implement it; tests compare them with a
plain implementation. Nothing here knows of requests or models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of new tokens, each with the pages of its whole context, new tokens included.

    row_starts: [n_rows + 1] into the new tokens. pages: all rows' pages; page_starts: [n_rows + 1]
    into them. int64, on the CPU. The new tokens are the last of their context: in a row with n new
    tokens and c pages, token i attends to the first c - n + i + 1 pages.
    """

    row_starts: Tensor
    pages: Tensor
    page_starts: Tensor

    def __post_init__(self) -> None:
        assert self.row_starts.ndim == self.pages.ndim == self.page_starts.ndim == 1
        assert len(self.row_starts) == len(self.page_starts)
        n_new, n_pages = self.row_starts.diff(), self.page_starts.diff()
        assert bool((n_new >= 1).all()), "a row without new tokens"
        assert bool((n_pages >= n_new).all()), "a row with fewer pages than new tokens"

    @property
    def n_rows(self) -> int:
        return len(self.row_starts) - 1


@dataclass(frozen=True, slots=True)
class Heads:
    """How a layer attends.

    window: a token sees itself and the window - 1 before it. softcap: scores become softcap *
    tanh(score / softcap). sinks: [n_heads], a score per head that takes part in the softmax but has
    no value.
    """

    scale: float
    window: int | None = None
    softcap: float | None = None
    sinks: Tensor | None = None


class PagedAttention(Protocol):
    def plan(self, ragged: Ragged) -> Any:
        """Computes once what all layers of a step share."""
        ...

    def attend(self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Any, heads: Heads) -> Tensor:
        """q: [n_tokens, n_heads, head_dim]; k_pool, v_pool: [n_pages, n_kv_heads, head_dim],
        n_heads a multiple of n_kv_heads; v's head_dim may differ. The new tokens are in the
        pool already. Returns [n_tokens, n_heads, v_head_dim]."""
        ...


def check_shapes(q: Tensor, k_pool: Tensor, v_pool: Tensor) -> None:
    assert q.ndim == k_pool.ndim == v_pool.ndim == 3
    assert q.shape[2] == k_pool.shape[2], "q and k differ in head_dim"
    assert k_pool.shape[:2] == v_pool.shape[:2], "k and v differ in pages or heads"
    assert q.shape[1] % k_pool.shape[1] == 0, "n_heads is no multiple of n_kv_heads"


def write(k_pool: Tensor, v_pool: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> None:
    """Writes new tokens' K and V into their pages.

    k, v: [n_tokens, n_kv_heads, head_dim]; slots: [n_tokens].
    """
    assert k.shape[0] == v.shape[0] == len(slots)
    assert k.shape[1:] == k_pool.shape[1:]
    assert v.shape[1:] == v_pool.shape[1:]
    k_pool.index_copy_(0, slots, k)
    v_pool.index_copy_(0, slots, v)
