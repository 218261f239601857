"""Runs a Hugging Face causal LM on the engine's flat batches: a `Forward`.

The model is computed by our own code where that knows its kind (`fused.py`), else by its own
(`transformers_model.py`; importing transformers is slow, and done only where needed); attention is
ours, over the pool's pages. Only safetensors are loaded, no remote code is run, nothing is
fetched. A model that does not fit is refused when it is loaded (`self_check.py`), never served
wrongly.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.torch_cpu import TorchCpuAttention
from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.fused import FusedModel, is_understood
from sgc.runtime.engine.model.packed import pack_linears
from sgc.runtime.engine.model.plain_files import find_plain
from sgc.runtime.engine.process.tuning import keep_freed_memory

MAX_POOL_TOKENS = 65536
_DTYPES = ("float32", "bfloat16")
_log = logging.getLogger(__name__)

Compute = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Step], torch.Tensor]
"""(token_ids [n_tokens], positions [n_tokens], wanted [n_logits], step) -> [n_logits, vocab]"""


class UnsupportedModel(ValueError):
    """A model that would not be served faithfully."""


class ModelRunner:
    """A model computed in some way, with a pool of `n_pages` tokens."""

    device_name = "cpu"

    def __init__(
        self, model: Any, compute: Compute, n_pages: int, keeps_model: bool = False
    ) -> None:
        """model: what `compute` was made of; kept, it can be asked what it says by itself."""
        self.model: Any = model if keeps_model else None
        self.name = type(model).__name__
        self.config = model.config.get_text_config()
        self.dtype: torch.dtype = model.dtype
        self.pool = KVPool(n_pages)
        self.vocab_size = int(model.get_output_embeddings().out_features)
        self.max_context = max_context_of(self.config)
        self.attention: PagedAttention = TorchCpuAttention()
        self._compute = compute

    @property
    def pool_tokens(self) -> int:
        return self.pool.n_pages

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def run(self, batch: FlatBatch) -> npt.NDArray[np.float32]:
        logits: npt.NDArray[np.float32] = self.logits(batch).float().numpy()
        return logits

    @torch.inference_mode()
    def logits(self, batch: FlatBatch) -> torch.Tensor:
        """[n_logits, vocab]"""
        ragged = Ragged(_tensor(batch.row_starts), _tensor(batch.pages), _tensor(batch.page_starts))
        step = Step(self.attention, self.attention.plan(ragged), _tensor(batch.slots), self.pool)
        tokens, positions = _tensor(batch.token_ids), _tensor(batch.positions)
        return self._compute(tokens, positions, _tensor(batch.logit_index), step)


# A model this small is no faster on two threads (2 cores, torch 2.13), and far slower where
# anything else runs: OpenMP's threads spin while they wait for one that is not scheduled.
ONE_THREAD_BELOW = 4_000_000


def load_model(
    folder: str,
    *,
    dtype: str = "auto",
    pool_tokens: int | None = None,
    max_context: int | None = None,
    threads: int | None = None,
) -> ModelRunner:
    """Loads, checks and sizes a model. dtype: "auto" (as saved), "float32" or "bfloat16"."""
    if threads is not None:
        torch.set_num_threads(threads)
    if dtype != "auto" and dtype not in _DTYPES:
        raise ValueError(f'dtype must be "auto", {" or ".join(map(repr, _DTYPES))}, not {dtype!r}')
    keep_freed_memory()
    runner = _checked_runner(folder, dtype, chooses_threads=threads is None)
    if max_context is not None:
        if max_context > runner.max_context:
            raise ValueError(f"max_context {max_context} is above the model's {runner.max_context}")
        runner.max_context = max_context
    n_pages = pool_tokens or default_pool_tokens(runner.pool.token_bytes)
    _check_pool(n_pages, runner.pool.token_bytes)
    runner.pool = KVPool(n_pages)
    return runner


def runner_of(model: Any, n_pages: int) -> ModelRunner:
    """A runner for a model in memory, computed in the fastest way there is for it.

    It takes the model over, which is of no other use afterwards.
    """
    return _ways(model)[0](model, n_pages)


def fused_runner(model: Any, n_pages: int) -> ModelRunner:
    return ModelRunner(model, FusedModel(model), n_pages)


def packed_runner(model: Any, n_pages: int) -> ModelRunner:
    runner = stock_runner(model, n_pages)
    pack_linears(model)
    return runner


def stock_runner(model: Any, n_pages: int) -> ModelRunner:
    from sgc.runtime.engine.model.transformers_model import StockModel

    return ModelRunner(model, StockModel(model), n_pages, keeps_model=True)


Way = Callable[[Any, int], ModelRunner]
"""(model, n_pages): a way to compute it."""


def _ways(model: Any) -> list[Way]:
    """In which a model of transformers can be computed, the fastest first."""
    fused = [fused_runner] if is_understood(model) else []
    return [*fused, packed_runner, stock_runner]


def _checked_runner(folder: str, dtype: str, chooses_threads: bool) -> ModelRunner:
    """Without transformers where our own reading of the folder is enough, and proves right."""
    runner = _plain_runner(folder, dtype, chooses_threads)
    return runner or _transformers_runner(folder, dtype, chooses_threads)


def _plain_runner(folder: str, dtype: str, chooses_threads: bool) -> ModelRunner | None:
    from sgc.runtime.engine.model.self_check import own_answers

    files = find_plain(Path(folder), dtype)
    if files is None:
        return None
    if chooses_threads:  # first of all: a small model is loaded before a second thread is made
        _choose_threads(files.num_parameters())
    model = files.load()
    return None if model is None else _tried(fused_runner, model, own_answers(model))


def _transformers_runner(folder: str, dtype: str, chooses_threads: bool) -> ModelRunner:
    from sgc.runtime.engine.model.self_check import check_model, own_answers
    from sgc.runtime.engine.model.transformers_files import load_stock

    model = load_stock(folder, dtype)
    if chooses_threads:
        _choose_threads(model.num_parameters())
    own = own_answers(model)
    *faster, slowest = _ways(model)
    for way in faster:
        if (runner := _tried(way, model, own)) is not None:
            return runner
        del model  # before it is in memory a second time
        model = load_stock(folder, dtype)
    runner = slowest(model, 1)
    check_model(runner, own)
    return runner


def _tried(way: Way, model: Any, own: Any) -> ModelRunner | None:
    """The runner, None if it does not say what the model says by itself (`own`)."""
    from sgc.runtime.engine.model.self_check import check_model

    try:
        runner = way(model, 1)
        check_model(runner, own)
    except (UnsupportedModel, AssertionError, RuntimeError) as error:
        _log.warning("%s fails its check, trying without: %s", way.__name__, error)
        return None
    return runner


def _choose_threads(n_parameters: int) -> None:
    if n_parameters < ONE_THREAD_BELOW:
        torch.set_num_threads(1)


def default_pool_tokens(token_bytes: int) -> int:
    """A quarter of the memory, within a bound."""
    return max(1024, min(MAX_POOL_TOKENS, _memory_bytes() // 4 // max(1, token_bytes)))


def _check_pool(n_pages: int, token_bytes: int) -> None:
    """The pool is allocated when the model first runs; what cannot be is refused now."""
    if n_pages * token_bytes > _memory_bytes():
        raise ValueError(
            f"a pool of {n_pages} tokens takes {n_pages * token_bytes / 2**30:.1f} GiB, of "
            f"{_memory_bytes() / 2**30:.1f} GiB of memory; choose fewer with --pool-tokens"
        )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def max_context_of(config: Any) -> int:
    """The longest context in which each position's K and V depend on its own prefix alone."""
    longest = int(getattr(config, "max_position_embeddings", None) or 32768)
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    if any(kind.get("rope_type") in ("dynamic", "longrope") for kind in kinds):
        # Beyond it the frequencies depend on the longest sequence of the batch.
        original = [kind.get("original_max_position_embeddings") for kind in kinds]
        original.append(getattr(config, "original_max_position_embeddings", None))
        longest = min([longest, *(int(n) for n in original if n)])
    # Within one chunk, chunked attention is plain causal attention.
    chunk = getattr(config, "attention_chunk_size", None)
    return min(longest, int(chunk)) if chunk else longest


def _tensor(values: npt.NDArray[np.int64]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))
