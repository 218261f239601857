"""The Triton attention against float64: in the interpreter where there is no GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from attention_cases import (
    ALLOWED,
    DTYPES,
    N_PAGES,
    Case,
    Sizes,
    case_of,
    error,
    exact,
    ragged_of,
    random_ragged,
)
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples
from tests_support import one_in
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged
from sgc.kernels.triton.attention import TritonAttention, refusal
from sgc.kernels.triton.paged.items import Sharing

SOON = Sharing(min_pages=8, min_saved=16)
SEEDS = st.integers(0, 10**6)


def attended(case: Case, device: str, plan=None, attention=None) -> Tensor:
    attention = attention or TritonAttention(device, SOON)
    sinks = None if case.heads.sinks is None else case.heads.sinks.to(device)
    heads = Heads(case.heads.scale, case.heads.window, case.heads.softcap, sinks)
    q, k_pool, v_pool = (t.to(device) for t in (case.q, case.k_pool, case.v_pool))
    return attention.attend(q, k_pool, v_pool, plan or attention.plan(case.ragged), heads)


def check(case: Case, device: str) -> None:
    assert error(attended(case, device), exact(case)) < ALLOWED[case.q.dtype]


@pytest.mark.slow
@examples(240, share=16)
@given(
    seed=SEEDS,
    dtype=st.sampled_from(DTYPES),
    group=st.sampled_from([1, 2, 3, 4, 7, 8]),
    n_kv_heads=st.sampled_from([1, 2]),
    head_dim=st.sampled_from([64, 64, 80, 96, 112, 128, 192, 256]),
    v_head_dim=st.sampled_from([None, None, None, 64, 112]),
    window=st.sampled_from([None, None, 1, 5, 90]),
    softcap=st.sampled_from([None, None, 2.0]),
    sinks=st.booleans(),
)
def test_random_batches(
    device, seed, dtype, group, n_kv_heads, head_dim, v_head_dim, window, softcap, sinks
):
    rng = np.random.default_rng(seed)
    longest = int(rng.choice([0, 30, 500]))
    new_tokens = [1, 1, 1, 2, 7, 40] if dtype.itemsize == 2 else [1, 1, 1, 3, 11]
    ragged = random_ragged(rng, longest, new_tokens, int(rng.integers(1, 7)))
    sizes = Sizes(n_kv_heads, group, head_dim, v_head_dim or head_dim)
    check(case_of(ragged, sizes, dtype, seed, window=window, softcap=softcap, sinks=sinks), device)


SOME = [("decode", [1]), ("mixed", [1, 1, 20])]
EXTEND = ("extend", [40, 130])  # takes the interpreter longer


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize(
    ("dtype", "new_tokens"),
    [
        *(pytest.param(d, n, id=f"{name} {d}") for d in DTYPES for name, n in SOME),
        *(pytest.param(d, EXTEND[1], id=f"extend {d}", marks=pytest.mark.slow) for d in DTYPES),
        pytest.param(torch.float16, [40], id="short extend"),
    ],
)
def test_prefixes_of_up_to_2k(device, dtype, new_tokens):
    ragged = random_ragged(np.random.default_rng(1), 2000, new_tokens, 3)
    check(case_of(ragged, Sizes(), dtype, 1), device)


def family(n_rows: int, n_shared: int, n_new: int = 1, n_own: int = 5) -> Ragged:
    """Rows that begin alike."""
    pages = np.random.default_rng(3).permutation(N_PAGES)
    own = pages[n_shared:]
    return ragged_of(
        [
            (n_new, np.concatenate([pages[:n_shared], own[i * n_own : (i + 1) * n_own]]))
            for i in range(n_rows)
        ]
    )


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("rows", "sinks"), one_in(2, [(2, 1), (3, 1), (40, 1), (5, 4)], [False, True])
)
def test_shared_trunks(device, rows, sinks):
    n_rows, n_new = rows
    case = case_of(family(n_rows, 300, n_new), Sizes(), torch.float16, 2, sinks=sinks)
    check(case, device)


def test_two_trunks_among_others(device):
    a, b = family(6, 100), family(4, 80)
    alone = [(1, np.arange(5000, 5020)), (9, np.arange(5100, 5130))]
    rows = [(1, rows_pages(r, i)) for i in range(4) for r in (a, b)] + alone
    shifted = [(n, p if k % 2 == 0 or k >= 8 else p[::-1].copy()) for k, (n, p) in enumerate(rows)]
    check(case_of(ragged_of(shifted), Sizes(n_kv_heads=2), torch.float16, 4), device)


def rows_pages(ragged: Ragged, row: int) -> np.ndarray:
    start, end = ragged.page_starts[row : row + 2].tolist()
    return ragged.pages[start:end].numpy()


@pytest.mark.slow
def test_one_plan_serves_layers_of_all_kinds(device):
    """Windows that are longer than any context, shorter ones, other heads: in one step."""
    ragged = random_ragged(np.random.default_rng(5), 200, [1, 1, 6], 4)
    attention = TritonAttention(device, SOON)
    plan = attention.plan(ragged)
    for sizes in (Sizes(), Sizes(n_kv_heads=2, group=2, head_dim=80, v_head_dim=80)):
        for window in (None, 3, 10_000):
            case = case_of(ragged, sizes, torch.float16, 6, window=window)
            assert error(attended(case, device, plan, attention), exact(case)) < 1e-2
    assert len(plan.made) == 4


def test_tensors_that_are_parts_of_others(device):
    """q lies in one tensor with k and v, and pools have heads side by side with other layers'."""
    case = case_of(family(3, 50), Sizes(n_kv_heads=2), torch.float16, 7)
    n, n_heads, head_dim = case.q.shape
    qkv = torch.full((n, n_heads + 4, head_dim), torch.nan, dtype=case.q.dtype)
    qkv[:, :n_heads] = case.q
    pools = [torch.stack([p, p * torch.nan], 1)[:, 0] for p in (case.k_pool, case.v_pool)]
    check(Case(qkv[:, :n_heads], *pools, case.ragged, case.heads), device)


def test_a_batch_with_a_row_of_one_page(device):
    check(case_of(ragged_of([(1, np.array([7]))]), Sizes(), torch.float16, 8), device)


# -- plans for graphs --


def decode_rows(lengths: list[int], seed: int = 0) -> Ragged:
    pages = np.random.default_rng(seed).permutation(N_PAGES)
    ends = np.cumsum(lengths)
    return ragged_of([(1, pages[end - n : end]) for n, end in zip(lengths, ends, strict=True)])


@pytest.mark.slow
def test_a_decode_plan_serves_batches_that_change(device):
    attention = TritonAttention(device, SOON)
    plan = attention.decode_plan(6, 4000, [None, 64])
    for lengths in ([5], [1, 700, 30], [600] * 6, [3000, 1], [2, 2, 2]):
        ragged = decode_rows(lengths, seed=len(lengths))
        assert plan.fill(ragged)
        for window in (None, 64):
            case = case_of(ragged, Sizes(), torch.float16, 9, window=window, sinks=True)
            n_missing = 6 - len(lengths)
            missing = torch.full_like(case.q[:1], torch.nan).expand(n_missing, -1, -1)
            padded_case = Case(
                torch.cat([case.q, missing]), case.k_pool, case.v_pool, ragged, case.heads
            )
            out = attended(padded_case, device, plan, attention)
            assert error(out[: len(lengths)], exact(case)) < 1e-2
            assert (out[len(lengths) :] == 0).all()


@pytest.mark.slow
def test_a_decode_plan_has_the_same_launches_for_all_batches(device):
    attention = TritonAttention(device, SOON)
    plan = attention.decode_plan(6, 4000, [None], shares=True)
    case = case_of(decode_rows([3] * 6), Sizes(), torch.float16, 10)
    attended(case, device, plan, attention)
    (before,) = (static.items for static in plan._made.values())
    for ragged in (decode_rows([600] * 6), family(6, 300), family(4, 900, n_own=1)):
        assert plan.fill(ragged)
        (after,) = (static.items for static in plan._made.values())
        assert after is before
        case = case_of(ragged, Sizes(), torch.float16, 11)
        filled = replace(case, q=torch.cat([case.q, case.q])[:6])
        out = attended(filled, device, plan, attention)
        assert error(out[: ragged.n_rows], exact(case)) < 1e-2


def test_a_decode_plan_refuses_what_does_not_fit(device):
    plan = TritonAttention(device).decode_plan(3, 100, [None])
    assert not plan.fill(decode_rows([1, 1, 1, 1]))
    assert not plan.fill(decode_rows([60, 41]))
    assert not plan.fill(ragged_of([(2, np.arange(5))]))
    assert plan.fill(decode_rows([50, 49, 1]))


def test_a_decode_plan_that_was_never_filled_gives_zeros(device):
    attention = TritonAttention(device)
    case = case_of(decode_rows([1, 1]), Sizes(), torch.float16, 12)
    out = attended(case, device, attention.decode_plan(2, 100, [None]), attention)
    assert (out == 0).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs are of GPUs")
def test_a_captured_graph_attends_to_what_was_last_filled_in(device):
    attention = TritonAttention(device, SOON)
    plan = attention.decode_plan(6, 4000, [None], shares=True)
    case = case_of(decode_rows([5] * 6), Sizes(n_kv_heads=2), torch.bfloat16, 13)
    k_pool, v_pool = (torch.randn_like(pool) for pool in (case.k_pool, case.v_pool))
    q, *pools = (t.to(device) for t in (case.q, k_pool, v_pool))
    attention.attend(q, *pools, plan, case.heads)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attention.attend(q, *pools, plan, case.heads)
    for ragged in (decode_rows([600] * 6), family(6, 300), decode_rows([1, 3000]), family(4, 900)):
        assert plan.fill(ragged)
        out.fill_(torch.nan)
        graph.replay()
        n = ragged.n_rows
        expected = exact(Case(case.q[:n], k_pool, v_pool, ragged, case.heads))
        assert error(out[:n], expected) < 1e-2
        assert (out[n:] == 0).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs are of GPUs")
def test_a_layer_that_has_not_attended_is_not_captured(device):
    attention = TritonAttention(device, SOON)
    case = case_of(decode_rows([5] * 2), Sizes(), torch.bfloat16, 14)
    tensors = [t.to(device) for t in (case.q, case.k_pool, case.v_pool)]
    attention.attend(*tensors, attention.plan(case.ragged), case.heads)
    plan = attention.decode_plan(2, 100, [None])
    with pytest.raises(RuntimeError, match="attend once"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        attention.attend(*tensors, plan, case.heads)


# -- what is refused --


def test_what_is_not_supported_is_told():
    assert refusal(128, 128, torch.bfloat16) is None
    assert "at most 256" in (refusal(128, 512, torch.bfloat16) or "")
    assert "float16, bfloat16 and float32" in (refusal(128, 128, torch.float64) or "")
