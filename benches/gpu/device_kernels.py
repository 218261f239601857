"""The kernels against the machine's limits: what a device copies and multiplies a second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from device_timing import Found, median_s
from torch import Tensor

from sgc.kernels.interface import Heads, PagedAttention, Ragged
from sgc.kernels.torch_attention import TorchAttention
from sgc.kernels.triton.sampling import SamplingRows, sample
from sgc.runtime.engine.model.device.places import Place


@dataclass(frozen=True, slots=True)
class Limits:
    """bytes_s: copied, those read and those written; flops: of products in 16 bits, a second."""

    bytes_s: float
    flops: float


@dataclass(frozen=True, slots=True)
class Size:
    """Of the models and batches that are measured: an 8B Llama's, or tiny ones to try the bench."""

    n_heads: int = 32
    n_kv_heads: int = 8
    head_dim: int = 128
    rows: tuple[int, ...] = (1, 16, 64, 256)
    context: int = 2048
    chunks: tuple[int, ...] = (512, 2048)
    trunks: tuple[int, ...] = (0, 1024, 4096, 16384)
    n_siblings: int = 64
    own: int = 128
    vocab: int = 128256
    copied: int = 1 << 32
    product: int = 8192


FULL = Size()
TINY = Size(4, 2, 32, (2,), 40, (9,), (0, 64), 3, 5, 300, 1 << 20, 64)


def measure_limits(size: Size, device: torch.device, dtype: torch.dtype) -> Limits:
    source = torch.randint(0, 255, (size.copied,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_s = median_s([lambda: target.copy_(source)], device)
    n = size.product
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    product_s = median_s([lambda: a @ b], device)
    return Limits(2 * size.copied / copy_s, 2 * n**3 / product_s)


def limits_found(limits: Limits) -> Iterator[Found]:
    yield Found("limits", "copy", limits.bytes_s / 1e9, "GB/s")
    yield Found("limits", "products", limits.flops / 1e12, "TFLOP/s")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows over scattered pages. shared: pages that all rows begin with."""

    n_rows: int
    context: int
    n_new: int = 1
    shared: int = 0

    @property
    def n_pages(self) -> int:
        return self.shared + self.n_rows * (self.context - self.shared)

    def ragged(self) -> Ragged:
        rng = np.random.default_rng(0)
        pages = rng.permutation(self.n_pages)
        trunk, own = pages[: self.shared], pages[self.shared :].reshape(self.n_rows, -1)
        rows = [np.concatenate([trunk, one]) for one in own]
        starts = np.arange(self.n_rows + 1)
        return Ragged(
            torch.from_numpy(starts * self.n_new),
            torch.from_numpy(np.concatenate(rows)),
            torch.from_numpy(starts * self.context),
        )

    def bytes_read(self, size: Size, item: int) -> int:
        """K and V, each page once."""
        return 2 * self.n_pages * size.n_kv_heads * size.head_dim * item

    def pools(self, size: Size, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
        shape = self.n_pages, size.n_kv_heads, size.head_dim
        return [torch.randn(shape, device=device, dtype=dtype) for _ in range(2)]

    def queries(self, size: Size, device: torch.device, dtype: torch.dtype) -> Tensor:
        shape = self.n_rows * self.n_new, size.n_heads, size.head_dim
        return torch.randn(shape, device=device, dtype=dtype)

    def flops(self, size: Size) -> float:
        """Of the pairs of query and key that see each other; a trunk's are counted for each row."""
        seen = self.n_new * (self.context - self.n_new) + self.n_new * (self.n_new + 1) / 2
        return 4.0 * self.n_rows * seen * size.n_heads * size.head_dim


def agreement(place: Place, size: Size, dtype: torch.dtype) -> Iterator[Found]:
    """How far attention is from torch's, in float32: the greatest relative error of a token."""
    kernels, device = place.paged_attention(), place.device
    heads = Heads(size.head_dim**-0.5)
    for what, batch in (
        ("decode", Batch(7, size.context)),
        ("extend", Batch(2, size.context, n_new=size.context // 3)),
        ("siblings", Batch(size.n_siblings, size.trunks[-1] + size.own, shared=size.trunks[-1])),
    ):
        pools, q = batch.pools(size, device, dtype), batch.queries(size, device, dtype)
        out = kernels.attend(q, *pools, kernels.plan(batch.ragged()), heads)
        error = _error(out, _right(q, pools, batch.ragged(), heads))
        yield Found(f"error, {place.attention}", what, 100 * error, "% off")
    if place.is_gpu:
        error = _graph_error(place, size, dtype)
        yield Found(f"error, {place.attention}", "graph", 100 * error, "% off")


def _graph_error(place: Place, size: Size, dtype: torch.dtype) -> float:
    """Of a graph of 8 rows that is replayed for 5, then for 3."""
    kernels: Any = place.paged_attention()
    device, heads = place.device, Heads(size.head_dim**-0.5)
    whole = Batch(8, size.context)
    pools, q = whole.pools(size, device, dtype), whole.queries(size, device, dtype)
    plan = kernels.decode_plan(8, whole.n_pages, [None])
    capture: Any = place.capture()
    replay, out = capture(lambda: kernels.attend(q, *pools, plan, heads))
    errors = []
    for n in (5, 3):
        ragged = Batch(n, size.context).ragged()
        assert plan.fill(ragged)
        replay()
        errors.append(_error(out[:n], _right(q[:n], pools, ragged, heads)))
    return max(errors)


def _right(q: Tensor, pools: Sequence[Tensor], ragged: Ragged, heads: Heads) -> Tensor:
    plain = TorchAttention(device=q.device)
    return plain.attend(q.float(), *(p.float() for p in pools), plain.plan(ragged), heads)


def _error(out: Tensor, right: Tensor) -> float:
    lengths = (out.float() - right).norm(dim=(1, 2)) / right.norm(dim=(1, 2))
    return float(lengths.max())


def attention(place: Place, size: Size, limits: Limits, dtype: torch.dtype) -> Iterator[Found]:
    """Decoding as a share of the rate of copies, chunks as one of products, and siblings."""
    name, kernels, device = place.attention, place.paged_attention(), place.device
    for n in size.rows:
        batch = Batch(n, size.context)
        took = _took(kernels, batch, size, device, dtype)
        share = batch.bytes_read(size, dtype.itemsize) / took / limits.bytes_s
        yield Found(f"decode, {name}", f"{n} rows of {size.context}", took * 1e6, "us", share)
    for n in size.chunks:
        batch = Batch(1, 2 * n, n_new=n)
        took = _took(kernels, batch, size, device, dtype)
        share = batch.flops(size) / took / limits.flops
        yield Found(f"extend, {name}", f"{n} of {2 * n}", took * 1e6, "us", share)
    for n in size.trunks:
        batch = Batch(size.n_siblings, n + size.own, shared=n)
        took = _took(kernels, batch, size, device, dtype)
        share = batch.bytes_read(size, dtype.itemsize) / took / limits.bytes_s
        case = f"{size.n_siblings} siblings of {size.own}, {n} shared"
        yield Found(f"cascade, {name}", case, took * 1e6, "us", share)


def _took(
    kernels: PagedAttention, batch: Batch, size: Size, device: torch.device, dtype: torch.dtype
) -> float:
    """Seconds. Pools take turns, so that K and V come from memory."""
    pool_bytes = batch.bytes_read(size, dtype.itemsize)
    n_pools = max(1, min(8, (256 << 20) // max(1, pool_bytes)))
    pools = [batch.pools(size, device, dtype) for _ in range(n_pools)]
    q = batch.queries(size, device, dtype)
    plan, heads = kernels.plan(batch.ragged()), Heads(size.head_dim**-0.5)

    def work(k: Tensor, v: Tensor) -> Tensor:
        return kernels.attend(q, k, v, plan, heads)

    return median_s([lambda k=k, v=v: work(k, v) for k, v in pools], device)


def sampling(size: Size, limits: Limits, device: torch.device) -> Iterator[Found]:
    for what, temperature, top_k, top_p in (
        ("greedy", 0.0, 0, 1.0), ("temperature", 0.8, 0, 1.0), ("top-p", 0.8, 0, 0.9),
        ("top-k and top-p", 0.8, 50, 0.9),
    ):  # fmt: skip
        for n in (size.rows[0], size.rows[-1]):
            logits = torch.randn(n, size.vocab, device=device)
            rows = _rows(n, temperature, top_k, top_p, device)
            took = median_s([lambda logits=logits, rows=rows: sample(logits, rows)], device)
            share = logits.nbytes / took / limits.bytes_s
            yield Found("sampling", f"{what}, {n} rows of {size.vocab}", took * 1e6, "us", share)


def _rows(
    n: int, temperature: float, top_k: int, top_p: float, device: torch.device
) -> SamplingRows:
    def full(value: float, dtype: torch.dtype) -> Tensor:
        return torch.full((n,), value, dtype=dtype, device=device)

    return SamplingRows(
        full(temperature, torch.float32), full(top_k, torch.int32), full(top_p, torch.float64),
        full(0.0, torch.float32), torch.rand(n, dtype=torch.float64, device=device),
        any_drawn=temperature > 0, any_top_k=top_k > 0, any_top_p=top_p < 1,
    )  # fmt: skip
