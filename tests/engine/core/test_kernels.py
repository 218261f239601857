"""Attention over the pool: torch on the CPU against the plain reference."""

from __future__ import annotations

import pytest
import torch

from sgc.kernels import torch_cpu
from sgc.kernels.interface import Heads, Ragged, write
from sgc.kernels.reference import ReferenceAttention
from sgc.kernels.torch_cpu import TorchCpuAttention

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
    plain, fast = ReferenceAttention(), TorchCpuAttention()
    expected = plain.attend(q, k, v, plain.plan(ragged), heads)
    plan = fast.plan(ragged)
    for _ in range(2):  # the second layer of a step uses the plan's masks again
        torch.testing.assert_close(fast.attend(q, k, v, plan, heads), expected)


def test_values_may_have_another_size() -> None:
    q, k, v, ragged = make_batch(4, 2, v_dim=12)
    plain, fast = ReferenceAttention(), TorchCpuAttention()
    expected = plain.attend(q, k, v, plain.plan(ragged), Heads(0.3))
    assert expected.shape == (q.shape[0], 4, 12)
    torch.testing.assert_close(fast.attend(q, k, v, fast.plan(ragged), Heads(0.3)), expected)


def test_half_precision_is_close() -> None:
    q, k, v, ragged = make_batch(4, 2)
    plain, fast = ReferenceAttention(), TorchCpuAttention()
    expected = plain.attend(q, k, v, plain.plan(ragged), Heads(0.3))
    half = fast.attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), fast.plan(ragged), Heads(0.3))
    torch.testing.assert_close(half.float(), expected, atol=0.05, rtol=0.05)


def test_groups_are_cut_by_length_and_size(monkeypatch) -> None:
    monkeypatch.setattr(torch_cpu, "MAX_GROUP_TOKENS", 100)
    q, k, v, ragged = make_batch(4, 2)
    fast = TorchCpuAttention()
    plan = fast.plan(ragged)
    sizes = sorted(tuple(group.pages.shape) for group in plan.groups)
    assert sizes == [(1, 90), (2, 2), (2, 44)]
    expected = ReferenceAttention().attend(q, k, v, ragged, Heads(0.3))
    torch.testing.assert_close(fast.attend(q, k, v, plan, Heads(0.3)), expected)


def test_shapes_are_checked() -> None:
    q, k, v, ragged = make_batch(4, 2)
    fast = TorchCpuAttention()
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
