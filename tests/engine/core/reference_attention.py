"""The plain attention: one row, one head at a time, in float64. An oracle for the others."""

from __future__ import annotations

import torch
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged, check_shapes


class ReferenceAttention:
    def plan(self, ragged: Ragged) -> Ragged:
        return ragged

    def attend(
        self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Ragged, heads: Heads
    ) -> Tensor:
        check_shapes(q, k_pool, v_pool)
        group = q.shape[1] // k_pool.shape[1]
        out = q.new_empty(q.shape[0], q.shape[1], v_pool.shape[2])
        for row in range(plan.n_rows):
            start, end = plan.row_starts[row], plan.row_starts[row + 1]
            pages = plan.pages[plan.page_starts[row] : plan.page_starts[row + 1]]
            for head in range(q.shape[1]):
                k, v = k_pool[pages, head // group], v_pool[pages, head // group]
                sink = None if heads.sinks is None else heads.sinks[head]
                out[start:end, head] = _one_head(q[start:end, head], k, v, heads, sink)
        return out


def _one_head(q: Tensor, k: Tensor, v: Tensor, heads: Heads, sink: Tensor | None) -> Tensor:
    """q: [n, head_dim]; k: [c, head_dim]; v: [c, v_head_dim]; q is the end of the context."""
    n, c = len(q), len(k)
    scores = q.double() @ k.double().T * heads.scale
    if heads.softcap is not None:
        scores = heads.softcap * torch.tanh(scores / heads.softcap)
    for i in range(n):
        last = c - n + i
        scores[i, last + 1 :] = -torch.inf
        if heads.window is not None:
            scores[i, : max(0, last - heads.window + 1)] = -torch.inf
    if sink is None:
        return (scores.softmax(-1) @ v.double()).to(q.dtype)
    with_sink = torch.cat([scores, sink.double().expand(n, 1)], dim=1)
    return (with_sink.softmax(-1)[:, :-1] @ v.double()).to(q.dtype)
