"""Pages in eight bits: what the native kernels write to them, and attention that reads them,
against float64, on every instruction set that this machine has."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest
import torch
from engine.core.model.cpu_attention import Case, exact, ragged_of, random_case
from engine.core.model.test_cpu_attention import ALLOWED, DTYPES, pool_of, tokens_alone, tree
from torch import Tensor

from sgc.kernels.cpu import library
from sgc.kernels.cpu.library import Format, Isa, KernelError, Library
from sgc.kernels.cpu.records import HeadShape, HeadsStep
from sgc.kernels.interface import Heads, Ragged
from sgc.kernels.pages import PageFormat

FORMATS = {torch.float32: Format.F32, torch.bfloat16: Format.BF16}


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


def format_of(pool: Tensor) -> PageFormat:
    return PageFormat(pool.shape[1], pool.shape[2], torch.int8)


def quantized(heads: Tensor) -> tuple[Tensor, Tensor]:
    """Integers, [n, n_heads, head_dim], and scales, [n, n_heads]; by the words of `PageFormat`."""
    wide = heads.float()
    scale = wide.abs().amax(-1) / 127
    numbers = (wide * (1 / scale[..., None])).round()
    return torch.where(scale[..., None].isnan(), 0, numbers).to(torch.int8), scale


def in_pages(pool: Tensor) -> Tensor:
    """The pages of what a pool holds. Pages that hold no numbers have a scale that is none."""
    page = format_of(pool)
    pages = page.pool(len(pool)).zero_()
    numbers, scales = quantized(pool)
    pages[:, : page.n_heads * page.head_dim] = numbers.flatten(1)
    page.scales(pages)[:] = scales
    return pages


def attended(
    native: Library, case: Case, k_pages: Tensor, v_pages: Tensor, n_threads: int = 2
) -> Tensor:
    q, ragged, heads, threads = case.q, case.ragged, case.heads, pool_of(native, n_threads)
    shape = HeadShape(
        q.shape[1], case.k_pool.shape[1], q.shape[2], case.v_pool.shape[2], FORMATS[q.dtype],
        Format.I8, heads.scale, heads.window or 0, heads.softcap or 0.0,
        None if heads.sinks is None else heads.sinks.data_ptr(),
    )  # fmt: skip
    plan = native.c.sgc_attention_plan(
        ragged.n_rows, ragged.row_starts.data_ptr(), ragged.pages.data_ptr(),
        ragged.page_starts.data_ptr(), ctypes.byref(shape), threads.count, case.deterministic,
    )  # fmt: skip
    if plan is None:
        raise native.error()
    out = q.new_empty(q.shape[0], q.shape[1], case.v_pool.shape[2])
    failed = native.c.sgc_attend(
        plan, ctypes.byref(shape), q.data_ptr(), q.shape[1] * q.shape[2], k_pages.data_ptr(),
        v_pages.data_ptr(), out.data_ptr(), threads.handle,
    )  # fmt: skip
    native.c.sgc_attention_plan_free(plan)
    assert not failed, native.error()
    return out


@lru_cache(maxsize=100)  # for all instruction sets
def solved(seed: int, dtype: torch.dtype) -> tuple[Case, Tensor, Tensor, Tensor]:
    """A case, its pages of K and V, and its attention in float64 over what the pages stand for."""
    case = random_case(seed, dtype)
    k_pages, v_pages = in_pages(case.k_pool), in_pages(case.v_pool)
    case.k_pool = format_of(case.k_pool).values(k_pages)
    case.v_pool = format_of(case.v_pool).values(v_pages)
    return case, k_pages, v_pages, exact(case)


def check(native: Library, seed: int, dtype: torch.dtype) -> None:
    case, k_pages, v_pages, expected = solved(seed, dtype)
    got = attended(native, case, k_pages, v_pages, 1 + seed % 3)
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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_heads", "n_kv", "head_dim"), [(3, 3, 48), (14, 2, 64), (4, 1, 33)])
def test_a_token_is_the_same_to_the_bit_whatever_is_beside_it(
    native, isa, dtype, n_heads, n_kv, head_dim
) -> None:
    rows = tree(np.random.default_rng(0))
    torch.manual_seed(0)
    k, v = torch.randn(2, 3000, n_kv, head_dim).to(dtype)
    q = torch.randn(sum(n for n, _ in rows), n_heads, head_dim).to(dtype)
    k_pages, v_pages = in_pages(k), in_pages(v)

    def of(ragged: Ragged, n_threads: int) -> Tensor:
        case = Case(q, k, v, ragged, Heads(head_dim**-0.5), True)
        return attended(native, case, k_pages, v_pages, n_threads)

    together = of(ragged_of(rows), 1)
    assert torch.equal(of(ragged_of(rows), 3), together)
    assert torch.equal(of(tokens_alone(rows), 2), together)


def written(
    native: Library, qkv: Tensor, n_heads: int, page: PageFormat, slots: Tensor, n_pages: int
) -> tuple[Tensor, Tensor]:
    """The pools after heads that are not rotated were written to the slots."""
    k_pool, v_pool = (page.pool(n_pages).fill_(77) for _ in range(2))
    of = FORMATS[qkv.dtype]
    step = HeadsStep(
        n_heads, page.n_heads, page.head_dim, of, Format.I8, None, None, 0.0, False, 0, False
    )
    failed = native.c.sgc_write_heads(
        ctypes.byref(step), qkv.data_ptr(), qkv.stride(0), len(qkv), None, None, slots.data_ptr(),
        k_pool.data_ptr(), v_pool.data_ptr(), pool_of(native, 2).handle,
    )  # fmt: skip
    assert not failed, native.error()
    return k_pool, v_pool


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_kv", "head_dim"), [(2, 48), (1, 33), (3, 7)])
def test_heads_are_written_in_eight_bits(native, isa, dtype, n_kv, head_dim) -> None:
    torch.manual_seed(0)
    n_tokens, n_heads, n_pages, page = 9, 3, 20, PageFormat(n_kv, head_dim, torch.int8)
    qkv = torch.randn(n_tokens, (n_heads + 2 * n_kv) * head_dim).to(dtype)
    qkv[3, n_heads * head_dim :] *= 1e6
    qkv[4, n_heads * head_dim :] = 0
    slots = torch.randperm(n_pages)[:n_tokens]
    pools = written(native, qkv, n_heads, page, slots, n_pages)
    others = [i for i in range(n_pages) if i not in slots.tolist()]
    for heads, pool in zip(
        qkv[:, n_heads * head_dim :].unflatten(1, (2, n_kv, head_dim)).unbind(1), pools, strict=True
    ):
        assert (pool[others] == 77).all()
        numbers, scales = quantized(heads)
        is_zero = (scales == 0)[..., None]
        got = pool[slots, : n_kv * head_dim].unflatten(1, (n_kv, head_dim))
        assert torch.equal(got, torch.where(is_zero, 0, numbers))
        torch.testing.assert_close(page.scales(pool)[slots], scales, rtol=1e-6, atol=1e-30)
        off = (page.values(pool)[slots] - heads.float()).abs()
        assert (off <= 0.501 * scales[..., None] + 1e-30).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_a_number_shows_in_its_head_alone(native, isa, dtype, bad) -> None:
    page = PageFormat(2, 16, torch.int8)
    qkv = torch.randn(2, 5 * 16).to(dtype)
    qkv[1, 16 + 3] = bad  # K of the second token's first head
    k_pool, v_pool = written(native, qkv, 1, page, torch.arange(2), 2)
    values = page.values(k_pool)
    assert values[1, 0].isnan().all()
    assert values[0].isfinite().all()
    assert values[1, 1].isfinite().all()
    assert page.values(v_pool).isfinite().all()


def test_pages_of_another_format_are_refused(native) -> None:
    case = Case(*(torch.randn(3, 2, 16) for _ in range(3)), ragged_of([(3, np.arange(3))]),
                Heads(1.0), False)  # fmt: skip
    case.q = case.q.bfloat16()
    shape = HeadShape(2, 2, 16, 16, Format.BF16, Format.F32, 1.0, 0, 0.0, None)
    ragged = case.ragged
    plan = native.c.sgc_attention_plan(
        1, ragged.row_starts.data_ptr(), ragged.pages.data_ptr(), ragged.page_starts.data_ptr(),
        ctypes.byref(shape), 1, False,
    )  # fmt: skip
    assert plan is None
    with pytest.raises(KernelError, match="pages of a format"):
        raise native.error()


def test_a_page_is_contiguous_and_its_scales_are_aligned() -> None:
    for n_heads, head_dim, n_bytes in [(2, 64, 136), (1, 33, 40), (3, 7, 36), (1, 1, 8)]:
        page = PageFormat(n_heads, head_dim, torch.int8)
        assert page.n_bytes == n_bytes
        pool = page.pool(5).zero_()
        page.scales(pool)[3] = 2.0
        pool[3, : n_heads * head_dim] = 5
        assert (page.values(pool)[3] == 10).all()
        assert page.values(pool)[[0, 1, 2, 4]].abs().sum() == 0
        copied = page.pool(2).zero_()
        copied[1] = pool[3]  # a page moves as bytes
        assert torch.equal(page.values(copied)[1], page.values(pool)[3])
    assert PageFormat(2, 64, torch.bfloat16).n_bytes == 256
