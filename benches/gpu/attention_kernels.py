"""The attention kernels on a GPU: their share of memory bandwidth and of the matrix rate.

    python -P benches/gpu/attention_kernels.py [--sweep] [--out FILE.json]

bfloat16, 32 query and 8 KV heads of 128 numbers, shuffled pages. Decode: the K and V that a layer
reads, over the median time of replays of a graph. Extend: its multiplications (4 * head_dim a head
and visible key), over the time of launches. Cascade: decode of rows that share a prefix, with and
without sharing. --sweep: other sizes of blocks than those of `kernels/triton/paged/blocks.py`, each
beside it. Bandwidth and matrix rate of the card are measured first: a copy, and a product.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import triton
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged
from sgc.kernels.triton.attention import TritonAttention
from sgc.kernels.triton.paged import items, launch
from sgc.kernels.triton.paged.blocks import Blocks, blocks

N_HEADS, N_KV_HEADS, HEAD_DIM = 32, 8, 128
PAGE_BYTES = 2 * 2 * N_KV_HEADS * HEAD_DIM  # K and V of a token in a layer
HEADS = Heads(HEAD_DIM**-0.5)
N_POOLS = 2  # layers, in turn, so that one does not find the other's pages in the cache
DECODE = [(1, 4096), (1, 131072), (16, 4096), (64, 1024), (64, 4096), (64, 16384), (256, 1024)]
EXTEND = [(1, 4096, 0), (1, 8192, 0), (4, 2048, 0), (1, 512, 16384), (16, 64, 4096)]
CASCADE = [(64, 1024), (64, 4096), (64, 16384)]
FEW = [Blocks(n, w, s) for n, w, s in [(64, 4, 2), (64, 4, 4), (32, 4, 4), (32, 2, 4), (128, 8, 3)]]
MANY = [Blocks(n, w, s) for n, w, s in [(64, 8, 2), (64, 8, 4), (32, 8, 4), (128, 8, 2)]]


class Bench:
    def __init__(self) -> None:
        self.attention = TritonAttention("cuda")
        self.generator = np.random.default_rng(0)
        n_pages = 1 + max(n * length for n, length in DECODE)
        self.pools = [
            [torch.randn(n_pages, N_KV_HEADS, HEAD_DIM, device="cuda").bfloat16() for _ in "kv"]
            for _ in range(N_POOLS)
        ]
        self.bandwidth = (
            2 * self.pools[0][0].nbytes / seconds(lambda: self.pools[0][0].copy_(self.pools[1][0]))
        )
        a = torch.randn(8192, 8192, device="cuda").bfloat16()
        self.matrix_rate = 2 * 8192**3 / seconds(lambda: a @ a)

    def ragged(self, n_rows: int, n_new: int, n_before: int, n_shared: int = 0) -> Ragged:
        n_own = n_new + n_before - n_shared
        pages = self.generator.permutation(len(self.pools[0][0]))[: n_shared + n_rows * n_own]
        shared, own = pages[:n_shared], pages[n_shared:].reshape(n_rows, n_own)
        rows = np.concatenate([np.broadcast_to(shared, (n_rows, n_shared)), own], axis=1)
        starts = torch.arange(n_rows + 1)
        row_starts, page_starts = starts * n_new, starts * (n_new + n_before)
        return Ragged(row_starts, torch.from_numpy(rows.reshape(-1).copy()), page_starts)

    def queries(self, ragged: Ragged) -> Tensor:
        return torch.randn(int(ragged.row_starts[-1]), N_HEADS, HEAD_DIM, device="cuda").bfloat16()

    def decode_s(self, ragged: Ragged, shares: bool = False) -> float:
        """Of one layer, in a graph of one for each pool."""
        q = self.queries(ragged)
        plan = self.attention.decode_plan(len(q), len(ragged.pages), [None], shares=shares)
        assert plan.fill(ragged)

        def step() -> None:
            for k_pool, v_pool in self.pools:
                self.attention.attend(q, k_pool, v_pool, plan, HEADS)

        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return seconds(graph.replay) / N_POOLS

    def extend_s(self, ragged: Ragged) -> float:
        q, plan = self.queries(ragged), self.attention.plan(ragged)
        return seconds(lambda: self.attention.attend(q, *self.pools[0], plan, HEADS))


def seconds(run: Callable[[], object]) -> float:
    return median(triton.testing.do_bench(run, warmup=25, rep=100, return_mode="all")) / 1000


def decode_rows(bench: Bench) -> Iterator[tuple[str, float, float]]:
    for n_rows, length in DECODE:
        took = bench.decode_s(bench.ragged(n_rows, 1, length - 1))
        share = n_rows * length * PAGE_BYTES / took / bench.bandwidth
        yield f"decode {n_rows} x {length}, of bandwidth", took, share


def extend_rows(bench: Bench) -> Iterator[tuple[str, float, float]]:
    for n_rows, n_new, n_before in EXTEND:
        took = bench.extend_s(bench.ragged(n_rows, n_new, n_before))
        n_seen = n_rows * (n_new * n_before + n_new * (n_new + 1) / 2)
        share = 4 * HEAD_DIM * N_HEADS * n_seen / took / bench.matrix_rate
        yield f"extend {n_rows} x {n_new} after {n_before}, of matrix rate", took, share


def cascade_rows(bench: Bench) -> Iterator[tuple[str, float, float]]:
    for n_rows, n_shared in CASCADE:
        ragged = bench.ragged(n_rows, 1, n_shared + 127, n_shared)
        apart, together = (bench.decode_s(ragged, shares) for shares in (False, True))
        yield f"cascade {n_rows} sharing {n_shared}, of the time apart", together, together / apart


def all_rows(bench: Bench) -> Iterator[tuple[str, float, float]]:
    yield from decode_rows(bench)
    yield from extend_rows(bench)
    yield from cascade_rows(bench)


def sweep_rows(bench: Bench) -> Iterator[tuple[str, float, float]]:
    """Decode with other blocks and numbers of splits for few rows, extend with others for many."""
    for block in FEW:
        with changed(launch, "blocks", lambda n, s, b=block: b if n <= 32 else blocks(n, s)):
            yield from ((f"{block} {name}", *row) for name, *row in decode_rows(bench))
    for n in (2, 4, 6):
        with changed(items, "FEW_PER_PROCESSOR", n):
            yield from ((f"{n} a processor {name}", *row) for name, *row in decode_rows(bench))
    for block in MANY:
        with changed(launch, "blocks", lambda n, s, b=block: blocks(n, s) if n <= 32 else b):
            yield from ((f"{block} {name}", *row) for name, *row in extend_rows(bench))
    # Tiles of half as many rows, two of which run on a processor at once.
    narrow = Blocks(64, 4, 2)
    with (
        changed(items, "many_rows", lambda shape: 64),
        changed(launch, "many_rows", lambda shape: 64),
        changed(items, "MANY_PER_PROCESSOR", 2),
        changed(launch, "blocks", lambda n, s: blocks(n, s) if n <= 32 else narrow),
    ):
        yield from ((f"64 rows {narrow} {name}", *row) for name, *row in extend_rows(bench))


@contextmanager
def changed(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    bench = Bench()
    card = torch.cuda.get_device_name()
    print(f"{card}, triton {triton.__version__}, torch {torch.__version__}")
    print(f"copy {bench.bandwidth / 1e12:.2f} TB/s, product {bench.matrix_rate / 1e12:.0f} TFLOP/s")
    told = []
    for name, took, share in (sweep_rows if options.sweep else all_rows)(bench):
        told.append({"name": name, "seconds": took, "share": share})
        print(f"{name:64} {took * 1e6:9.1f} us {share:7.1%}", flush=True)
    if options.out:
        measured = {"bandwidth": bench.bandwidth, "matrix_rate": bench.matrix_rate, "rows": told}
        options.out.write_text(json.dumps({"card": card, **measured}, indent=1))


if __name__ == "__main__":
    main()
