"""Runs a Hugging Face causal LM on the engine's flat batches: a `Forward`.

The model is computed by our own code where that knows its kind (`fused.py`), else by its own
(`stock.py`); attention is ours, over the pool's pages. Only safetensors are loaded, no remote
code is run, nothing is fetched. A model that does not fit is refused when it is loaded
(`self_check.py`), never served wrongly.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.torch_cpu import TorchCpuAttention
from sgc.runtime.engine.forward import FlatBatch
from sgc.runtime.engine.fused import FusedModel, is_understood
from sgc.runtime.engine.kv_pool import KVPool, Step
from sgc.runtime.engine.packed import pack_linears
from sgc.runtime.engine.stock import ATTENTION, StockModel
from sgc.runtime.engine.tuning import keep_freed_memory

MAX_POOL_TOKENS = 65536
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_log = logging.getLogger(__name__)

Compute = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Step], torch.Tensor]
"""(token_ids [n_tokens], positions [n_tokens], wanted [n_logits], step) -> [n_logits, vocab]"""


class UnsupportedModel(ValueError):
    """A model that would not be served faithfully."""


class ModelRunner:
    """A model computed in some way, with a pool of `n_pages` tokens."""

    device_name = "cpu"

    def __init__(self, model: Any, compute: Compute, n_pages: int) -> None:
        """model: what `compute` was made of."""
        self.model: Any = model if isinstance(compute, StockModel) else None
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
    runner = _checked_runner(folder, dtype, has_choice_of_threads=threads is None)
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
    runner = ModelRunner(model, StockModel(model), n_pages)
    pack_linears(model)
    return runner


def stock_runner(model: Any, n_pages: int) -> ModelRunner:
    return ModelRunner(model, StockModel(model), n_pages)


def _ways(model: Any) -> list[Callable[[Any, int], ModelRunner]]:
    """In which a model can be computed, the fastest first."""
    fused = [fused_runner] if is_understood(model) else []
    return [*fused, packed_runner, stock_runner]


def _checked_runner(folder: str, dtype: str, has_choice_of_threads: bool) -> ModelRunner:
    from sgc.runtime.engine.self_check import check_model, own_answers

    model = _load(folder, dtype)
    if has_choice_of_threads and model.num_parameters() < ONE_THREAD_BELOW:
        torch.set_num_threads(1)
    own = own_answers(model)
    *faster, slowest = _ways(model)
    for way in faster:
        try:
            runner = way(model, 1)
            check_model(runner, own)
            return runner
        except (UnsupportedModel, AssertionError, RuntimeError) as error:
            _log.warning("%s fails its check, trying without: %s", way.__name__, error)
        del model  # before it is in memory a second time
        model = _load(folder, dtype)
    runner = slowest(model, 1)
    check_model(runner, own)
    return runner


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


def _load(folder: str, dtype: str) -> Any:
    disable_progress_bar()  # type: ignore[no-untyped-call]
    common = {"local_files_only": True, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(folder, **common)
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=_DTYPES.get(dtype, "auto"),
            attn_implementation=ATTENTION,
            use_safetensors=True,
            **common,
        )
    except (ValueError, KeyError, AttributeError, ImportError) as error:
        names = ", ".join(config.architectures or [config.model_type])
        reason = str(error)
        if isinstance(error, KeyError) and ATTENTION in reason:
            reason = "it does not attend through transformers' attention interface"
        raise UnsupportedModel(f"{names} is not supported: {reason} ({folder})") from error


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
