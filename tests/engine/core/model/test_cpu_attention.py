"""The native attention against float64, on every instruction set that this machine has."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache, lru_cache

import numpy as np
import pytest
import torch
from engine.core.model.cpu_attention import Case, exact, ragged_of, random_case
from torch import Tensor

from sgc.kernels.cpu import library
from sgc.kernels.cpu.attention import NativeAttention
from sgc.kernels.cpu.library import Format, Isa, KernelError, Library, Threads
from sgc.kernels.cpu.records import HeadsStep
from sgc.kernels.interface import Heads, Ragged
from sgc.kernels.torch_attention import TorchAttention

DTYPES = [torch.float32, torch.bfloat16]
ALLOWED = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


@pytest.fixture(scope="module")
def native() -> Library:
    found = library.find()
    if found is None:
        pytest.skip(library.reason())
    return found


@pytest.fixture(params=list(Isa), ids=[isa.name for isa in Isa])
def isa(request, native: Library) -> Iterator[Isa]:
    best = native.isa
    if not native.has(request.param):
        pytest.skip(f"this machine has no {request.param.name}")
    native.limit(request.param)
    yield request.param
    native.limit(best)


@cache
def pool_of(native: Library, n_threads: int) -> Threads:
    return Threads(native, n_threads)


def attention(native: Library, n_threads: int = 2, deterministic: bool = False) -> NativeAttention:
    threads = pool_of(native, n_threads)
    return NativeAttention(native, threads, TorchAttention(), deterministic=deterministic)


def attended(case: Case, attention: NativeAttention) -> Tensor:
    plan = attention.plan(case.ragged)
    return attention.attend(case.q, case.k_pool, case.v_pool, plan, case.heads)


@lru_cache(maxsize=100)  # for all instruction sets
def solved_case(seed: int, dtype: torch.dtype) -> tuple[Case, Tensor]:
    case = random_case(seed, dtype)
    return case, exact(case)


def check(native: Library, seed: int, dtype: torch.dtype) -> None:
    case, expected = solved_case(seed, dtype)
    got = attended(case, attention(native, 1 + seed % 3, case.deterministic))
    allowed = ALLOWED[dtype]
    torch.testing.assert_close(got.double(), expected, atol=allowed, rtol=allowed)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_batch_agrees_with_float64(native, isa, dtype) -> None:
    for seed in range(8):
        check(native, seed, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", range(100, 400, 50))
def test_many_batches_agree_with_float64(native, isa, dtype, start) -> None:
    for seed in range(start, start + 50):
        check(native, seed, dtype)


def pools(
    dtype: torch.dtype, n_pages: int, n_kv: int = 2, head_dim: int = 48
) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    k, v = torch.randn(2, n_pages, n_kv, head_dim).to(dtype)
    return k, v


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [48, 64, 256])
def test_a_long_row_is_split_over_its_keys(native, isa, dtype, head_dim) -> None:
    k, v = pools(dtype, 3000, head_dim=head_dim)
    ragged = ragged_of([(1, np.random.default_rng(0).permutation(3000))])
    case = Case(torch.randn(1, 4, head_dim).to(dtype), k, v, ragged, Heads(0.1), False)
    for n_threads in (1, 3):
        got = attended(case, attention(native, n_threads)).double()
        torch.testing.assert_close(got, exact(case), atol=ALLOWED[dtype], rtol=ALLOWED[dtype])


def tokens_alone(rows: list[tuple[int, np.ndarray]]) -> Ragged:
    """Each new token of each row as a row of its own."""
    return ragged_of([(1, pages[: len(pages) - n + i + 1]) for n, pages in rows for i in range(n)])


def tree(rng: np.random.Generator) -> list[tuple[int, np.ndarray]]:
    """A long trunk, a chunk of its own end, branches, and branches of a branch."""
    trunk = rng.permutation(1000).astype(np.int64)
    own = iter(np.split(np.arange(1000, 3000), 100))
    branch = np.concatenate([trunk, next(own)[:9]])
    rows = [(150, trunk), (9, branch), (1, trunk[:333]), (1, np.arange(2900, 3000))]
    rows += [(1 + i % 3, np.concatenate([trunk[:700], next(own)])) for i in range(5)]
    rows += [(1, np.concatenate([branch, next(own)])) for i in range(3)]
    return rows


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n_heads", "n_kv", "head_dim", "window"), [(3, 3, 48, 100), (14, 2, 64, None)]
)
def test_a_token_is_the_same_to_the_bit_whatever_is_beside_it(
    native, isa, dtype, n_heads, n_kv, head_dim, window
) -> None:
    rows = tree(np.random.default_rng(0))
    k, v = pools(dtype, 3000, n_kv, head_dim)
    q = torch.randn(sum(n for n, _ in rows), n_heads, head_dim).to(dtype)
    heads = Heads(head_dim**-0.5, window, sinks=torch.zeros(n_heads))
    together = attention(native, 1, True).attend(
        q, k, v, attention(native).plan(ragged_of(rows)), heads
    )
    alone = tokens_alone(rows)
    for n_threads in (2, 3):
        native_attention = attention(native, n_threads, True)
        plan = native_attention.plan(ragged_of(rows))
        assert torch.equal(native_attention.attend(q, k, v, plan, heads), together)
        got = native_attention.attend(q, k, v, native_attention.plan(alone), heads)
        assert torch.equal(got, together), "as rows of one token"
    one = attention(native, 2, True)
    for token in (0, 149, 155, int(alone.row_starts[-1]) - 1):
        at = slice(int(alone.page_starts[token]), int(alone.page_starts[token + 1]))
        row = ragged_of([(1, alone.pages[at].numpy())])
        got = one.attend(q[token : token + 1], k, v, one.plan(row), heads)
        assert torch.equal(got[0], together[token]), "alone"


@pytest.mark.parametrize("dtype", DTYPES)
def test_chunks_give_the_same_to_the_bit(native, isa, dtype) -> None:
    pages = np.random.default_rng(0).permutation(700).astype(np.int64)
    k, v = pools(dtype, 700)
    q = torch.randn(700, 4, 48).to(dtype)
    native_attention = attention(native, 2, True)

    def chunks(sizes: list[int]) -> Tensor:
        found, end = [], 0
        for size in sizes:
            start, end = end, end + size
            plan = native_attention.plan(ragged_of([(size, pages[:end])]))
            found.append(native_attention.attend(q[start:end], k, v, plan, Heads(0.1)))
        return torch.cat(found)

    whole = chunks([700])
    assert torch.equal(chunks([3, 64, 1, 100, 512, 20]), whole)


@pytest.mark.parametrize("dtype", DTYPES)
def test_later_tokens_that_are_no_numbers_do_not_reach_earlier_ones(native, isa, dtype) -> None:
    k, v = pools(dtype, 100)
    ragged = ragged_of([(40, np.arange(100)), (1, np.arange(60))])
    case = Case(torch.randn(41, 4, 48).to(dtype), k, v, ragged, Heads(0.1, window=30), False)
    expected = exact(case)
    for pool in (k, v):
        pool[95:] = torch.nan  # seen by the last five tokens of the first row
        pool[:5] = torch.nan  # seen by none
    got = attended(case, attention(native)).double()
    assert got[35:40].isnan().all()
    is_clean = [*range(35), 40]
    torch.testing.assert_close(
        got[is_clean], expected[is_clean], atol=ALLOWED[dtype], rtol=ALLOWED[dtype]
    )


def reads(native: Library, rows: list[tuple[int, np.ndarray]], window: int | None = None) -> int:
    """Keys read for two KV heads."""
    k, v = pools(torch.float32, 3000)
    native_attention = attention(native)
    plan = native_attention.plan(ragged_of(rows))
    q = torch.randn(sum(n for n, _ in rows), 4, 48)
    native_attention.attend(q, k, v, plan, Heads(0.1, window))
    (native_plan,) = plan.native.values()
    return native_plan.n_reads // 2


def test_what_rows_share_is_read_once(native) -> None:
    trunk = np.arange(240)
    rows = [(1, np.concatenate([trunk, 1000 + 60 * i + np.arange(60)])) for i in range(20)]
    assert reads(native, rows) == 240 + 20 * 60
    assert reads(native, [(1, np.arange(300)), (1, np.arange(300, 600))]) == 600
    # Two branches of the trunk, each shared by ten rows.
    for i, (_, pages) in enumerate(rows):
        pages[240:288] = 2900 + i % 2 * 50 + np.arange(48)
    assert reads(native, rows) == 240 + 2 * 48 + 20 * 12
    # One row's new tokens are what the others begin with.
    assert reads(native, [(8, trunk), *rows]) == 240 + 2 * 48 + 20 * 12


def test_a_window_reads_no_more_than_it_sees(native) -> None:
    assert reads(native, [(1, np.arange(1000))], window=100) <= 100 + 16


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_dtypes_go_to_the_fallback(native, dtype) -> None:
    k, v = pools(dtype, 50)
    case = Case(
        torch.randn(2, 4, 48).to(dtype), k, v, ragged_of([(2, np.arange(50))]), Heads(0.1), False
    )
    torch.testing.assert_close(
        attended(case, attention(native)).double(), exact(case), atol=1e-2, rtol=1e-2
    )


def test_what_is_wrong_is_refused(native) -> None:
    k, v = pools(torch.float32, 50)
    native_attention = attention(native)
    ragged = ragged_of([(2, np.arange(50))])
    plan = native_attention.plan(ragged)
    ragged.page_starts[1] = 1  # behind the back of Ragged
    with pytest.raises(KernelError, match="fewer pages than new tokens"):
        native_attention.attend(torch.randn(2, 4, 48), k, v, plan, Heads(0.1))


def rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """x: [n_tokens, n_heads, head_dim]; cos, sin: [n_tokens, n_rotated / 2]"""
    half = cos.shape[1]
    cos, sin, whole = cos[:, None], sin[:, None], x.clone()
    low, high = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (
        slice(0, half), slice(half, 2 * half))  # fmt: skip
    whole[..., low] = x[..., low] * cos - x[..., high] * sin
    whole[..., high] = x[..., high] * cos + x[..., low] * sin
    return whole


def normed(x: Tensor, weight: Tensor | None, eps: float, adds_one: bool) -> Tensor:
    if weight is None:
        return x
    scale = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return x * scale * (weight + 1 if adds_one else weight)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(
    ("head_dim", "n_rotated", "has_norms", "adds_one"),
    [(48, 48, False, False), (64, 32, True, False), (80, 20, True, True), (17, 0, True, False),
     (64, 0, False, False)],
)  # fmt: skip
def test_heads_are_normed_rotated_and_written(
    native, isa, dtype, interleaved, head_dim, n_rotated, has_norms, adds_one
) -> None:
    torch.manual_seed(0)
    n_tokens, n_heads, n_kv, n_pages = 11, 4, 2, 30
    width = (n_heads + 2 * n_kv) * head_dim
    qkv = torch.randn(n_tokens, width + 5).to(dtype)  # rows of another stride
    cos, sin = torch.randn(2, n_tokens, n_rotated // 2)
    norms = [torch.randn(head_dim) if has_norms else None for _ in range(2)]
    slots = torch.randperm(n_pages)[:n_tokens]
    k_pool, v_pool = torch.full((2, n_pages, n_kv, head_dim), torch.nan).to(dtype)
    before = qkv.clone()
    q, k, v = (
        t.unflatten(1, (-1, head_dim)).double()
        for t in before[:, :width].split([n_heads * head_dim, n_kv * head_dim, n_kv * head_dim], 1)
    )
    step = HeadsStep(
        n_heads, n_kv, head_dim, *[Format.F32 if dtype == torch.float32 else Format.BF16] * 2,
        *(None if norm is None else norm.data_ptr() for norm in norms), 1e-5, adds_one,
        n_rotated, interleaved,
    )  # fmt: skip
    threads = pool_of(native, 2)
    failed = native.c.sgc_write_heads(
        ctypes.byref(step), qkv.data_ptr(), qkv.stride(0), n_tokens, cos.data_ptr(),
        sin.data_ptr(), slots.data_ptr(), k_pool.data_ptr(), v_pool.data_ptr(), threads.handle,
    )  # fmt: skip
    assert not failed, native.error()
    q, k = (
        rotated(normed(x, norm, 1e-5, adds_one), cos.double(), sin.double(), interleaved)
        for x, norm in zip((q, k), norms, strict=True)
    )
    allowed = 1e-5 if dtype == torch.float32 else 1e-2
    got = qkv[:, : n_heads * head_dim].unflatten(1, (-1, head_dim)).double()
    torch.testing.assert_close(got, q, atol=allowed, rtol=allowed)
    torch.testing.assert_close(k_pool[slots].double(), k, atol=allowed, rtol=allowed)
    assert torch.equal(v_pool[slots].double(), v)
    assert torch.equal(qkv[:, width:], before[:, width:])
    others = [i for i in range(n_pages) if i not in slots.tolist()]
    assert k_pool[others].isnan().all()
    assert v_pool[others].isnan().all()


def test_heads_of_no_sense_are_refused(native) -> None:
    step = HeadsStep(4, 2, 48, Format.F32, Format.F32, None, None, 1e-5, False, 7, False)
    threads = pool_of(native, 1)
    assert native.c.sgc_write_heads(
        ctypes.byref(step), None, 400, 0, None, None, None, None, None, threads.handle
    )
    assert "n_rotated" in str(native.error())
