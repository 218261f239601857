"""Attention over the pool: torch on the CPU against the plain reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.core.reference_attention import ReferenceAttention
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.kernels import partial, parts
from sgc.kernels.interface import Heads, Ragged, write
from sgc.kernels.shared import shared_prefixes
from sgc.kernels.torch_attention import TorchAttention

# (new tokens, context) of each row: decodes short and long, whole prompts, later chunks.
ROWS = [(1, 1), (1, 90), (5, 5), (1, 40), (4, 30), (1, 44), (2, 3), (17, 60), (1, 2)]


def make_batch(n_heads: int, n_kv: int, v_dim: int = 8, n_pages: int = 200):
    """Rows share pages as requests do; pages no row has hold what is not a number."""
    torch.manual_seed(0)
    used = torch.randperm(n_pages)[:100]
    k = torch.full((n_pages, n_kv, 8), torch.nan)
    v = torch.full((n_pages, n_kv, v_dim), torch.nan)
    k[used], v[used] = torch.randn(100, n_kv, 8), torch.randn(100, n_kv, v_dim)
    pages = [used[torch.randperm(100)[:context]] for _, context in ROWS]
    row_starts = torch.tensor([0, *(n for n, _ in ROWS)]).cumsum(0)
    page_starts = torch.tensor([0, *(c for _, c in ROWS)]).cumsum(0)
    q = torch.randn(int(row_starts[-1]), n_heads, 8)
    return q, k, v, Ragged(row_starts, torch.cat(pages), page_starts)


@pytest.mark.parametrize(("n_heads", "n_kv"), [(4, 4), (4, 2), (6, 1)])
@pytest.mark.parametrize(
    "heads",
    [
        Heads(0.3),
        Heads(0.3, window=7),
        Heads(0.3, softcap=2.0),
        Heads(0.3, sinks=torch.linspace(-1, 2, 12)),
        Heads(0.5, window=3, softcap=1.0, sinks=torch.linspace(-1, 2, 12)),
    ],
)
def test_torch_agrees_with_the_reference(n_heads, n_kv, heads) -> None:
    if heads.sinks is not None:
        heads = Heads(heads.scale, heads.window, heads.softcap, heads.sinks[:n_heads])
    q, k, v, ragged = make_batch(n_heads, n_kv)
    plain, fast = ReferenceAttention(), TorchAttention()
    expected = plain.attend(q, k, v, plain.plan(ragged), heads)
    plan = fast.plan(ragged)
    for _ in range(2):  # the second layer of a step uses the plan's masks again
        torch.testing.assert_close(fast.attend(q, k, v, plan, heads), expected)


def test_values_may_have_another_size() -> None:
    q, k, v, ragged = make_batch(4, 2, v_dim=12)
    plain, fast = ReferenceAttention(), TorchAttention()
    expected = plain.attend(q, k, v, plain.plan(ragged), Heads(0.3))
    assert expected.shape == (q.shape[0], 4, 12)
    torch.testing.assert_close(fast.attend(q, k, v, fast.plan(ragged), Heads(0.3)), expected)


def test_half_precision_is_close() -> None:
    q, k, v, ragged = make_batch(4, 2)
    plain, fast = ReferenceAttention(), TorchAttention()
    expected = plain.attend(q, k, v, plain.plan(ragged), Heads(0.3))
    half = fast.attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), fast.plan(ragged), Heads(0.3))
    torch.testing.assert_close(half.float(), expected, atol=0.05, rtol=0.05)


def test_groups_are_cut_by_length_and_size(monkeypatch) -> None:
    monkeypatch.setattr(parts, "MAX_GROUP_PAGES", 100)
    q, k, v, ragged = make_batch(4, 2)
    fast = TorchAttention()
    plan = fast.plan(ragged)
    groups = [part for part in plan.full if part.n_queries == 1]
    assert sorted((g.n_rows, len(g.pages) // g.n_rows) for g in groups) == [
        (1, 90),
        (2, 2),
        (2, 44),
    ]
    expected = ReferenceAttention().attend(q, k, v, ragged, Heads(0.3))
    torch.testing.assert_close(fast.attend(q, k, v, plan, Heads(0.3)), expected)


@st.composite
def ragged_batches(draw) -> tuple[Ragged, int]:
    """Rows that share prefixes of a few documents as requests do, decodes and chunks mixed;
    and how many pages there are. Pages come in any order."""
    n_docs = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    docs = rng.permutation(n_docs * 40).reshape(n_docs, 40)
    next_page, rows, n_new = n_docs * 40, [], []
    for _ in range(draw(st.integers(1, 8))):
        n_shared = draw(st.sampled_from([0, 0, 3, 20, 40]))
        n_own = draw(st.integers(0 if n_shared else 1, 12))
        own = np.arange(next_page, next_page + n_own)
        next_page += n_own
        rows.append(np.concatenate([docs[draw(st.integers(0, n_docs - 1)), :n_shared], own]))
        n_new.append(draw(st.sampled_from([1, 1, 2, n_own or 1, len(rows[-1])])))
    n_new = [min(n, len(row)) for n, row in zip(n_new, rows, strict=True)]
    starts = [torch.tensor([0, *sizes]).cumsum(0) for sizes in (n_new, map(len, rows))]
    return Ragged(starts[0], torch.from_numpy(np.concatenate(rows)), starts[1]), next_page


@given(
    ragged_batches(),
    st.sampled_from([(4, 4), (4, 2), (6, 1)]),
    st.sampled_from([(1, 1), (3, 20), (32, 512)]),
    st.sampled_from([(0, 0), (3, 512), (32, 7), (32, 512)]),
    st.sampled_from([None, None, 1, 5, 30]),
    st.sampled_from([None, None, 1.5]),
    st.booleans(),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
@examples(30)
def test_any_batch_agrees_with_the_reference(
    batch, n_heads, thresholds, joined, window, softcap, has_sinks, dtype
) -> None:
    ragged, n_pages = batch
    torch.manual_seed(0)
    k, v = torch.randn(2, n_pages, n_heads[1], 8).to(dtype)
    q = torch.randn(int(ragged.row_starts[-1]), n_heads[0], 8).to(dtype)
    sinks = torch.linspace(-1, 2, n_heads[0]) if has_sinks else None
    heads = Heads(0.4, window, softcap, sinks)
    fast = TorchAttention(*thresholds)
    expected = ReferenceAttention().attend(q, k, v, ragged, heads)
    with pytest.MonkeyPatch.context() as patch:  # of short rows none, some, in runs or all joined
        patch.setattr(parts, "MAX_SHORT_TOKENS", joined[0])
        patch.setattr(parts, "MAX_JOINED_TOKENS", joined[1])
        got = fast.attend(q, k, v, fast.plan(ragged), heads)
    allowed = 1e-5 if dtype == torch.float32 else 0.03
    torch.testing.assert_close(got, expected, atol=allowed, rtol=allowed)


def test_what_rows_share_is_attended_to_once() -> None:
    prefix = torch.randperm(200)
    rows = [torch.cat([prefix, torch.tensor([200 + 2 * i, 201 + 2 * i])]) for i in range(6)]
    stranger = torch.arange(300, 340)
    pages = [*rows[:3], stranger, *rows[3:]]
    starts = torch.tensor([0, *map(len, pages)]).cumsum(0)
    ragged = Ragged(torch.arange(8), torch.cat(pages), starts)
    shared, own, alone = TorchAttention().plan(ragged).full
    assert (shared.n_rows, shared.n_queries, len(shared.pages)) == (1, 6, 200)
    assert (own.n_rows, len(own.pages), own.is_first) == (6, 12, False)
    assert (alone.n_rows, len(alone.pages), alone.is_first) == (1, 40, True)
    assert len(TorchAttention(min_pages=201).plan(ragged).full) == 2


def tree_batch(n_prompt: int = 200, n_trees: int = 3) -> Ragged:
    """Trees of choices as a score runs them: a trunk, branches of it, leaves of those; each row
    has the pages of the prompt, its ancestors and its own. A prompt's chunk is a row, too."""
    rng, at = np.random.default_rng(0), n_prompt
    prompt = np.arange(n_prompt)
    rows: list[tuple[int, np.ndarray]] = [(60, np.arange(5000, 5100))]
    for _ in range(n_trees):
        ancestors = [(0, prompt)]
        for n_branches in (1, 3, 6):
            below = []
            for _ in range(n_branches):
                _, before = ancestors[rng.integers(len(ancestors))]
                n = int(rng.integers(1, 8))
                below.append((n, np.concatenate([before, np.arange(at, at + n)])))
                at += n
            ancestors = below
            rows += below
    row_starts = torch.tensor([0, *(n for n, _ in rows)]).cumsum(0)
    page_starts = torch.tensor([0, *(len(pages) for _, pages in rows)]).cumsum(0)
    pages = np.concatenate([pages for _, pages in rows])
    return Ragged(row_starts, torch.from_numpy(pages), page_starts)


TREE_HEADS = [
    Heads(0.3),
    Heads(0.3, window=5),
    Heads(0.3, window=100),
    Heads(0.3, softcap=2.0),
    Heads(0.3, sinks=torch.linspace(-1, 2, 4)),
    Heads(0.3, window=9, softcap=2.0, sinks=torch.linspace(-1, 2, 4)),
]


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("heads", TREE_HEADS)
@pytest.mark.parametrize("n_prompt", [0, 10, 200])
def test_branches_are_attended_to_together(n_prompt, heads, dtype) -> None:
    torch.manual_seed(0)
    ragged, fast = tree_batch(n_prompt), TorchAttention()
    k, v = torch.randn(2, 5100, 2, 8).to(dtype)
    q = torch.randn(int(ragged.row_starts[-1]), 4, 8).to(dtype)
    plan = fast.plan(ragged)
    expected = ReferenceAttention().attend(q, k, v, ragged, heads)
    allowed = 1e-5 if dtype == torch.float32 else 0.03
    torch.testing.assert_close(
        fast.attend(q, k, v, plan, heads), expected, atol=allowed, rtol=allowed
    )
    one_by_one = [part for part in plan.parts(heads.window) if part.n_queries not in (1, 60)]
    assert len(one_by_one) <= 2, "all branches together, after what they share"


def test_rows_are_joined_only_where_that_saves() -> None:
    def kinds(rows: list[tuple[int, int]]) -> list[bool]:
        """Of rows that share nothing, by new tokens and context: whether each part is masked."""
        starts = [torch.tensor([0, *sizes]).cumsum(0) for sizes in zip(*rows, strict=True)]
        ragged = Ragged(starts[0], torch.arange(int(starts[1][-1])), starts[1])
        return [part.sees is not None for part in TorchAttention().plan(ragged).full]

    assert kinds([(5, 5)]) == [False]
    assert kinds([(5, 5)] * 3) == [False]  # alike, and so one causal call as they are
    assert kinds([(5, 5), (6, 6)]) == [True]
    assert kinds([(5, 20), (6, 30)]) == [True]
    assert kinds([(5, 20), (64, 90)]) == [True, False, False]  # one is long
    assert kinds([(5, 20), (6, 900)]) == [True, False, False]
    assert not any(kinds([(20, 110)] * 20))  # each token would see twenty rows' keys


def test_without_torchs_private_kernel_all_is_the_same(monkeypatch) -> None:
    q, k, v, ragged = make_batch(4, 2)
    monkeypatch.setattr(partial, "_FLASH", None)
    fast = TorchAttention(1, 1)
    expected = ReferenceAttention().attend(q, k, v, ragged, Heads(0.3))
    torch.testing.assert_close(fast.attend(q, k, v, fast.plan(ragged), Heads(0.3)), expected)


def test_shapes_are_checked() -> None:
    q, k, v, ragged = make_batch(4, 2)
    fast = TorchAttention()
    with pytest.raises(AssertionError, match="multiple"):
        fast.attend(q[:, :3], k, v, fast.plan(ragged), Heads(1.0))
    with pytest.raises(AssertionError, match="fewer pages"):
        Ragged(torch.tensor([0, 3]), torch.tensor([1, 2]), torch.tensor([0, 2]))


def test_write_puts_tokens_into_their_pages() -> None:
    k_pool, v_pool = torch.zeros(5, 2, 3), torch.zeros(5, 2, 4)
    k, v = torch.randn(2, 2, 3), torch.randn(2, 2, 4)
    write(k_pool, v_pool, torch.tensor([4, 1]), k, v)
    assert torch.equal(k_pool[4], k[0])
    assert torch.equal(v_pool[1], v[1])
    assert k_pool[[0, 2, 3]].abs().sum() == 0


@pytest.mark.parametrize("loner", [0, 7, 20])
def test_a_row_that_shares_little_does_not_hide_what_others_share(loner: int) -> None:
    """Wherever it stands among twenty that share a long document."""
    rows = [np.arange(3040) if i != loner else np.r_[np.arange(40), 5000:5500] for i in range(21)]
    pages, starts = np.concatenate(rows), np.cumsum([0, *map(len, rows)])
    found = shared_prefixes(pages, starts, np.diff(starts) - 1, min_pages=32, min_saved=512)
    assert max((len(prefix.rows), prefix.n_pages) for prefix in found)[0] == 20
    assert max(prefix.n_pages for prefix in found) >= 3000
