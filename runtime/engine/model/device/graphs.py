"""CUDA graphs of decoding steps: a step of few rows is hundreds of kernels of some microseconds,
which the host launches more slowly than the device runs them. A graph launches all of them at once.

There is one graph for each of a few sizes of batch, over the same memory; a step takes the smallest
that it fits in, and the rows that are left over are empty. A step that holds anything else
(prompts, guesses) runs without a graph.
"""

from __future__ import annotations

import bisect
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.parts import tensor_of
from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.model.forward import FlatBatch

_log = logging.getLogger(__name__)
MAX_PAGES = 1 << 22  # of all rows of a step, each row's counted: 16 MiB of int32


class DecodePlan(Protocol):
    """A plan in memory that stays, for a given number of rows with one new token each."""

    def fill(self, ragged: Ragged) -> bool:
        """Writes a batch of at most as many rows; the rest are empty. Returns whether it fits."""
        ...


class GraphAttention(PagedAttention, Protocol):
    def decode_plan(self, n_rows: int, max_pages: int, windows: list[int | None]) -> DecodePlan: ...


def sizes(max_rows: int) -> list[int]:
    """The batch sizes that have a graph: fewer rows are wasted where a row counts for more."""
    some = [1, 2, 4, 8, *range(16, 64, 16), *range(64, 256, 32), *range(256, 4096, 128)]
    return [*(n for n in some if n < max_rows), max_rows]


Capture = Callable[[Callable[[], Tensor]], tuple[Callable[[], None], Tensor]]
"""Captures a computation: what runs it again, and the memory that its result is always in."""


@dataclass(frozen=True, slots=True)
class _Graph:
    """inputs: [3, n_rows]: tokens, positions, slots."""

    n_rows: int
    inputs: Tensor
    plan: DecodePlan
    replay: Callable[[], None]
    logits: Tensor

    def run(self, batch: FlatBatch, known: Tensor | None) -> Tensor | None:
        if not self.plan.fill(_ragged(batch)):
            return None
        n = batch.n_rows
        inputs = np.zeros((3, self.n_rows), np.int64)
        inputs[2] = -1  # no page
        inputs[0, :n], inputs[1, :n], inputs[2, :n] = batch.token_ids, batch.positions, batch.slots
        self.inputs.copy_(pinned(torch.from_numpy(inputs), self.inputs.device), non_blocking=True)
        if known is not None:
            self.inputs[0, :n].copy_(known)
        self.replay()
        return self.logits[:n]


class DecodeGraphs:
    def __init__(
        self,
        compute: Callable[[Tensor, Tensor, Tensor, Step], Tensor],
        attention: GraphAttention,
        pool: KVPool,
        capture: Capture,
        max_rows: int,
        max_context: int,
    ) -> None:
        """Captures them, the largest first, whose memory the others share."""
        started_s = time.perf_counter()
        self._compute, self._attention, self._pool = compute, attention, pool
        self._capture, self._max_context = capture, max_context
        self._logits: Tensor | None = None  # the largest graph's, where others write theirs
        self._graphs = list(self._captured(sizes(max_rows)))
        took_s = time.perf_counter() - started_s
        _log.info("captured %d graphs of decoding in %.1f s", len(self._graphs), took_s)

    def _captured(self, sizes: list[int]) -> Iterator[_Graph]:
        yield from reversed([self._graph(n) for n in reversed(sizes)])

    def run(self, batch: FlatBatch, known: Tensor | None = None) -> Tensor | None:
        """Logits, until the next run; None where no graph holds the step. known: the batch's
        tokens, if they are on the device."""
        n = batch.n_rows
        if batch.n_tokens != n or len(batch.logit_index) != n:
            return None
        at = bisect.bisect_left(self._graphs, n, key=lambda graph: graph.n_rows)
        return self._graphs[at].run(batch, known) if at < len(self._graphs) else None

    def _graph(self, n_rows: int) -> _Graph:
        device = torch.device(self._pool.device)
        inputs = torch.zeros(3, n_rows, dtype=torch.int64, device=device)
        inputs[2] = -1
        max_pages = min(n_rows * self._max_context, MAX_PAGES)
        windows = sorted(self._pool.windows, key=lambda window: window or 0)
        plan = self._attention.decode_plan(n_rows, max_pages, windows)
        every = torch.arange(n_rows, device=device)
        step = Step(self._attention, plan, inputs[2], self._pool)

        def compute() -> Tensor:
            logits = self._compute(inputs[0], inputs[1], every, step)
            return logits if self._logits is None else self._logits[:n_rows].copy_(logits)

        replay, logits = self._capture(compute)
        if self._logits is None:
            self._logits = logits
        return _Graph(n_rows, inputs, plan, replay, logits)


class CudaCapture:
    """Captures CUDA graphs that share memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory = torch.cuda.graph_pool_handle()

    def __call__(self, compute: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        ahead: Any = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        ahead.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(ahead):  # compiles kernels, and lets libraries allocate
            compute()
        torch.cuda.current_stream(self._device).wait_stream(ahead)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._memory):
            logits = compute()
        return graph.replay, logits


def pinned(values: Tensor, device: torch.device) -> Tensor:
    """The values in memory that a GPU copies from while the host goes on."""
    return values.pin_memory() if device.type == "cuda" else values


def _ragged(batch: FlatBatch) -> Ragged:
    return Ragged(tensor_of(batch.row_starts), tensor_of(batch.pages), tensor_of(batch.page_starts))
