"""What is handed to FlashInfer means, by its documentation, the attention that is asked for: a
plain attention reads those very arrays. No kernel of its own runs here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from engine.core.reference_attention import ReferenceAttention
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples
from torch import Tensor

from sgc.kernels.flashinfer.attention import FlashInferAttention
from sgc.kernels.flashinfer.inputs import Rows, cascaded
from sgc.kernels.flashinfer.library import Kind
from sgc.kernels.flashinfer.workspace import workspace_bytes
from sgc.kernels.interface import Heads, Ragged
from sgc.kernels.torch_attention import TorchAttention

N_PAGES, N_HEADS, N_KV, HEAD_DIM = 400, 4, 2, 64


def bytes_reserved(
    options: dict[str, Any], starts: Tensor, page_starts: Tensor, n_most: int
) -> int:
    """What `PrefillPlan` reserves (0.6.18, scheduler.cuh). n_most: the tokens of a graph's first
    plan; 0 outside of graphs."""
    n_heads, n_kv = options["num_qo_heads"], options["num_kv_heads"]
    dim, group, n_rows = options["head_dim_qk"], n_heads // n_kv, len(starts) - 1
    packed, keys = starts.diff() * group, page_starts.diff()
    wide = (n_most - n_rows + 1) * group if n_most else int(packed.sum()) // n_rows
    tile = 128 if wide > 64 and dim < 256 else 64 if wide > 16 else 16
    most = 2 * 132 // n_kv
    if options["window_left"] >= 0:
        keys = keys.clamp(max=options["window_left"] + tile)
    low, high = 128, max(1, int(keys.max()))

    def n_items(chunk: int) -> int:
        return int((-(-packed // tile) * -(-keys.clamp(min=1) // chunk)).sum())

    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if n_items(middle) > most else (low, middle)
    if not n_most and low >= max(1, int(keys.max())):
        return 0
    n_tiles = -(-n_most * group // tile) + n_rows - 1
    return n_heads * (max(most, n_tiles) if n_most else n_items(low)) * tile * (dim + 1) * 4


@dataclass
class PlainWrapper:
    """`BatchPrefillWithPagedKVCacheWrapper` by its documentation (0.6.18): a row's keys are those
    of its pages, the last of which holds `paged_kv_last_page_len` tokens; queries are a row's last
    tokens if causal; `window_left` tokens before it are seen; log-sum-exps are to the base of 2."""

    workspace: Tensor
    buffers: Rows | None = None
    planned: dict[str, Any] = field(default_factory=dict)
    n_most: int | None = None

    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, **options):
        arrays = qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len
        assert all(array.dtype == torch.int32 for array in arrays)
        assert len(qo_indptr) == len(paged_kv_indptr) == len(paged_kv_last_page_len) + 1
        assert paged_kv_indptr[-1] == len(paged_kv_indices)
        n_pages = paged_kv_indptr.diff()
        assert bool(((n_pages == 0) == (paged_kv_last_page_len == 0)).all())
        assert bool((paged_kv_last_page_len <= options["page_size"]).all())
        if self.buffers is not None:  # of a graph: arrays go there, and sizes may not change
            held = self.buffers
            assert len(qo_indptr) == len(held.q_starts)
            assert len(paged_kv_indices) <= len(held.pages)
            self.n_most = self.n_most or int(qo_indptr[-1])
            assert int(qo_indptr[-1]) <= self.n_most
        reserved = bytes_reserved(options, qo_indptr, paged_kv_indptr, self.n_most or 0)
        assert reserved <= len(self.workspace)
        self.planned = {**options, "arrays": arrays}

    def run(
        self, q: Tensor, paged_kv_cache: tuple[Tensor, Tensor], return_lse: bool = False
    ) -> Any:
        options = self.planned
        k_pages, v_pages = paged_kv_cache
        assert k_pages.shape[1] == options["page_size"] == 1
        assert q.shape[1:] == (options["num_qo_heads"], options["head_dim_qk"])
        assert q.dtype == options["q_data_type"] == options["kv_data_type"]
        out, lse = torch.full_like(q, torch.nan), torch.full(q.shape[:2], torch.nan)
        starts, page_starts, pages, last = (array.tolist() for array in options["arrays"])
        for row in range(len(last)):
            at = slice(starts[row], starts[row + 1])
            keys = pages[page_starts[row] : page_starts[row + 1]]
            if at.start == at.stop:
                continue
            assert keys, "queries without keys: what they get is not documented"
            out[at], lse[at] = self._row(q[at], k_pages[keys, 0], v_pages[keys, 0])
        return (out, lse) if return_lse else out

    def _row(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        options, group = self.planned, q.shape[1] // k.shape[1]
        k, v = (t.double().repeat_interleave(group, 1) for t in (k, v))
        scores = torch.einsum("nhd,chd->hnc", q.double(), k) * options["sm_scale"]
        if options["logits_soft_cap"] > 0:
            cap = options["logits_soft_cap"]
            scores = cap * torch.tanh(scores / cap)
        n, c = scores.shape[1:]
        query, key = torch.arange(c - n, c)[:, None], torch.arange(c)
        sees = torch.ones(n, c, dtype=torch.bool)
        if options["causal"]:
            sees &= key <= query
        if options["window_left"] >= 0:
            assert options["causal"], "a window of queries that are not the last tokens"
            sees &= key >= query - options["window_left"]
        scores = scores.masked_fill(~sees, -math.inf)
        out = torch.einsum("hnc,chd->nhd", scores.softmax(-1), v)
        return out.to(q.dtype), (scores.logsumexp(-1) / math.log(2)).t().float()


class PlainLibrary:
    def planned(self, workspace: Tensor, buffers: Rows | None) -> PlainWrapper:
        return PlainWrapper(workspace, buffers)

    def merge(self, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
        weights = torch.stack([one[1], other[1]]).mul(math.log(2)).softmax(0)[..., None]
        return (weights[0] * one[0].float() + weights[1] * other[0].float()).to(one[0].dtype)


def attention() -> FlashInferAttention:
    return FlashInferAttention("cpu", TorchAttention(), PlainLibrary())


@st.composite
def batches(draw: st.DrawFn) -> Ragged:
    """Rows of new tokens over scattered pages; some begin with the pages of one of two trunks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    free = list(rng.permutation(N_PAGES))
    trunks = [[free.pop() for _ in range(draw(st.integers(1, 60)))] for _ in range(2)]
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.integers(0, 12)),
                         min_size=1, max_size=9))  # fmt: skip
    n_new = [n for _, n, _ in rows]
    pages = [
        [*(trunks[which] if which < 2 else []), *(free.pop() for _ in range(n + own))]
        for which, n, own in rows
    ]
    starts = [np.concatenate([[0], np.cumsum(n)]) for n in (n_new, [len(p) for p in pages])]
    return Ragged(*map(torch.from_numpy, (starts[0], np.concatenate(pages), starts[1])))


def tensors(ragged: Ragged, dtype: torch.dtype, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = N_PAGES, N_KV, HEAD_DIM
    q = torch.randn(int(ragged.row_starts[-1]), N_HEADS, HEAD_DIM, generator=generator)
    pools = [torch.randn(shape, generator=generator) for _ in range(2)]
    for pool in pools:  # whoever reads another page notices
        pool[np.setdiff1d(np.arange(N_PAGES), ragged.pages.numpy())] = torch.nan
    return tuple(t.to(dtype) for t in (q, *pools))


KINDS = st.builds(
    Heads,
    scale=st.floats(0.05, 1.0),
    window=st.sampled_from([None, None, 1, 7, 40]),
    softcap=st.sampled_from([None, None, 5.0]),
)


def check(got: Tensor, ragged: Ragged, q: Tensor, k: Tensor, v: Tensor, heads: Heads) -> None:
    plain = ReferenceAttention()
    wide = [t.double() for t in (q, k, v)]
    right = plain.attend(*wide, plain.plan(ragged), heads)
    assert ((got.double() - right).norm(dim=-1) / right.norm(dim=-1)).max() < 1e-2


@examples(60)
@given(batches(), KINDS, st.integers(0, 99))
def test_what_it_is_handed_means_the_attention(ragged: Ragged, heads: Heads, seed: int) -> None:
    q, k, v = tensors(ragged, torch.float16, seed)
    ours = attention()
    plan = ours.plan(ragged)
    plan.cascaded = cascaded(ragged, min_pages=2, min_saved=2)
    for _ in range(2):  # as two layers
        check(ours.attend(q, k, v, plan, heads), ragged, q, k, v, heads)


@examples(30)
@given(batches(), KINDS, st.integers(0, 99), st.integers(0, 3))
def test_a_plan_of_a_graph(ragged: Ragged, heads: Heads, seed: int, n_over: int) -> None:
    """Captured for more rows than a step has; then filled with one step's rows after another's."""
    page_ends = ragged.page_starts[1:]
    n = ragged.n_rows
    pages = [ragged.pages[a:b] for a, b in zip(ragged.page_starts, page_ends, strict=False)]
    ours = attention()
    plan = ours.decode_plan(n + n_over, 10_000, [heads.window])
    q, k, v = tensors(ragged, torch.float16, seed)
    static = torch.zeros(n + n_over, N_HEADS, HEAD_DIM, dtype=torch.float16)
    ours.attend(static, k, v, plan, heads)  # captures
    for rows in (range(n), range(n // 2, n)):
        chosen = [pages[row] for row in rows]
        starts = torch.tensor([0, *np.cumsum([len(p) for p in chosen])])
        step = Ragged(torch.arange(len(chosen) + 1), torch.cat(chosen), starts)
        assert plan.fill(step)
        static[: len(chosen)] = q[: len(chosen)]
        out = ours.attend(static, k, v, plan, heads)[: len(chosen)]
        check(out, step, q[: len(chosen)], k, v, heads)


@examples(200)
@given(
    st.sampled_from([(1, 1), (4, 1), (71, 1), (8, 8), (28, 4), (48, 2), (64, 4), (96, 8)]),
    st.sampled_from([64, 128, 256]),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 600), st.integers(0, 9000)), min_size=1, max_size=40),
)
def test_the_workspace_suffices(
    heads: tuple[int, int], dim: int, is_graph: bool, rows: list[tuple[int, int]]
) -> None:
    """Few rows with many keys are split most."""
    kind = Kind(*heads, dim, torch.bfloat16, 1.0, None, None)
    n_new = [1 if is_graph else n for n, _ in rows]
    keys = [n + before for n, (_, before) in zip(n_new, rows, strict=True)]
    starts, page_starts = (torch.tensor([0, *np.cumsum(n)]) for n in (n_new, keys))
    options = {"num_qo_heads": heads[0], "num_kv_heads": heads[1], "head_dim_qk": dim,
               "window_left": -1}  # fmt: skip
    n_rows = len(rows) if is_graph else 0
    reserved = bytes_reserved(options, starts, page_starts, n_rows)
    assert reserved <= workspace_bytes(kind, 132, n_rows)


@pytest.mark.parametrize(("n_shared", "stays"), [(300, True), (3000, False)])
def test_a_graph_is_left_where_much_is_shared(n_shared: int, stays: bool) -> None:
    trunk, n = np.arange(n_shared), 64
    pages = torch.from_numpy(np.concatenate([np.append(trunk, n_shared + i) for i in range(n)]))
    rows = Ragged(torch.arange(n + 1), pages, torch.arange(n + 1) * (n_shared + 1))
    assert cascaded(rows).trunks is not None
    assert attention().decode_plan(n, len(pages), [None]).fill(rows) == stays


def test_rows_that_share_a_trunk_are_planned_apart_and_in_order() -> None:
    trunk, other = list(range(300)), list(range(300, 390))
    rows = [[*trunk, 391], [*other, 392], [*trunk, 393], [*trunk, 394, 395]]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    row_starts = torch.tensor([0, 1, 2, 3, 5])
    ragged = Ragged(row_starts, torch.tensor(np.concatenate(rows)), torch.from_numpy(starts))
    batch = cascaded(ragged, min_pages=2, min_saved=2)
    assert batch.trunks is not None
    assert batch.trunks.q_starts.tolist() == [0, 4]
    assert batch.trunks.pages.tolist() == trunk
    assert batch.order is not None
    assert batch.order.tolist() == [0, 2, 3, 4, 1]
    assert batch.own.page_starts.tolist() == [0, 1, 2, 4, 95 - 0]
    assert batch.n_shared == 4


@pytest.mark.parametrize(
    ("dtype", "heads"),
    [(torch.float32, Heads(0.3)), (torch.float16, Heads(0.3, sinks=torch.ones(N_HEADS)))],
)
def test_what_it_does_not_cover_goes_to_the_other(
    dtype: torch.dtype, heads: Heads, caplog: pytest.LogCaptureFixture
) -> None:
    ragged = Ragged(torch.tensor([0, 2]), torch.arange(9), torch.tensor([0, 9]))
    q, k, v = tensors(ragged, dtype, 0)
    ours = attention()
    plan = ours.plan(ragged)
    out, _ = (ours.attend(q, k, v, plan, heads) for _ in range(2))
    assert not plan.of_kinds
    (told,) = caplog.messages  # once
    assert told.startswith(f"FlashInfer does not attend with {N_HEADS} heads of {HEAD_DIM} in ")
    other = TorchAttention()
    torch.testing.assert_close(out, other.attend(q, k, v, other.plan(ragged), heads))


def test_heads_that_take_too_much_memory_go_to_the_other() -> None:
    ragged = Ragged(torch.tensor([0, 2]), torch.arange(9), torch.tensor([0, 9]))
    ours = attention()
    plan, pool = ours.plan(ragged), torch.ones(9, 1, 64, dtype=torch.bfloat16)
    for n_heads, is_ours in ((16, True), (71, False)):
        ours.attend(torch.ones(2, n_heads, 64, dtype=pool.dtype), pool, pool, plan, Heads(0.3))
        assert bool(plan.of_kinds) == is_ours
        plan.of_kinds.clear()
