"""Runs a Hugging Face causal LM on the engine's flat batches: a `Forward`.

The model's own code does everything but attention, which it looks up by name: ours writes
K and V into the pool and attends over pages. Only safetensors are loaded, no remote code is
run, nothing is fetched. A model that does not fit is refused when it is loaded
(`self_check.py`), never served wrongly.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoConfig,
    AutoModelForCausalLM,
)
from transformers.utils import logging

from sgc.kernels.interface import Heads, PagedAttention, Ragged, write
from sgc.kernels.torch_cpu import TorchCpuAttention
from sgc.runtime.engine.forward import FlatBatch

ATTENTION = "sgc_pool"
MAX_POOL_TOKENS = 65536
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class UnsupportedModel(ValueError):
    """A model that would not be served faithfully."""


@dataclass(slots=True)
class KVPool:
    """Each layer's K and V: [n_pages, n_kv_heads, head_dim], made when the layer first runs."""

    n_pages: int
    layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def layer(
        self, index: int, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """k, v: [n_tokens, n_kv_heads, head_dim], an example of what it will hold."""
        pools = self.layers.get(index)
        if pools is None:
            pools = (
                k.new_empty(self.n_pages, *k.shape[1:]),
                v.new_empty(self.n_pages, *v.shape[1:]),
            )
            self.layers[index] = pools
        return pools

    @property
    def token_bytes(self) -> int:
        """What one page takes in all layers that have run."""
        sizes = [t[0].numel() * t.element_size() for pools in self.layers.values() for t in pools]
        return sum(sizes)


@dataclass(slots=True)
class _Step:
    """What the attention function needs of the batch that is being run."""

    attention: PagedAttention
    plan: Any
    slots: torch.Tensor
    pool: KVPool


# Some models drop keyword arguments on the way to their layers, so this is no argument. One
# batch runs at a time in a process.
_step: _Step | None = None


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The function that models call. query, key, value: [1, n_heads, n_tokens, head_dim]."""
    step = _step
    assert step is not None, "the model was run outside of a batch"
    assert query.shape[0] == 1, "a flat batch has one row"
    q, k, v = (t[0].transpose(0, 1) for t in (query, key, value))
    k_pool, v_pool = step.pool.layer(int(module.layer_idx), k, v)  # type: ignore[arg-type]
    write(k_pool, v_pool, step.slots, k, v)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    heads = Heads(float(scale), sliding_window or None, softcap, s_aux)
    out = step.attention.attend(q, k_pool, v_pool, step.plan, heads)
    return out[None], None


def _no_mask(*_: Any, **__: Any) -> None:
    """Models build no mask: the attention function knows which pages a row has."""


AttentionInterface.register(ATTENTION, _attend)
AttentionMaskInterface.register(ATTENTION, _no_mask)


class ModelRunner:
    """A transformers model with a pool of `n_pages` tokens."""

    device_name = "cpu"

    def __init__(self, model: Any, n_pages: int) -> None:
        self.model = model
        self.pool = KVPool(n_pages)
        self.vocab_size = int(model.get_output_embeddings().weight.shape[0])
        self.max_context = _max_context(model.config.get_text_config())
        self._attention = TorchCpuAttention()

    @property
    def pool_tokens(self) -> int:
        return self.pool.n_pages

    @property
    def dtype_name(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    def run(self, batch: FlatBatch) -> npt.NDArray[np.float32]:
        logits: npt.NDArray[np.float32] = self.logits(batch).float().numpy()
        return logits

    @torch.inference_mode()
    def logits(self, batch: FlatBatch) -> torch.Tensor:
        """[n_logits, vocab]"""
        global _step
        ragged = Ragged(_tensor(batch.row_starts), _tensor(batch.pages), _tensor(batch.page_starts))
        plan = self._attention.plan(ragged)
        _step = _Step(self._attention, plan, _tensor(batch.slots), self.pool)
        try:
            output = self.model(
                input_ids=_tensor(batch.token_ids)[None],
                position_ids=_tensor(batch.positions)[None],
                use_cache=False,
                logits_to_keep=_tensor(batch.logit_index),
            )
        finally:
            _step = None
        logits: torch.Tensor = output.logits[0]
        return logits


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
    from sgc.runtime.engine.self_check import check_model

    if threads is not None:
        torch.set_num_threads(threads)
    if dtype != "auto" and dtype not in _DTYPES:
        raise ValueError(f'dtype must be "auto", {" or ".join(map(repr, _DTYPES))}, not {dtype!r}')
    model = _load(folder, dtype)
    if threads is None and model.num_parameters() < ONE_THREAD_BELOW:
        torch.set_num_threads(1)
    runner = runner_of(model, 1)
    check_model(runner)
    if max_context is not None:
        if max_context > runner.max_context:
            raise ValueError(f"max_context {max_context} is above the model's {runner.max_context}")
        runner.max_context = max_context
    n_pages = pool_tokens or default_pool_tokens(runner.pool.token_bytes)
    _check_pool(n_pages, runner.pool.token_bytes)
    runner.pool = KVPool(n_pages)
    return runner


def runner_of(model: Any, n_pages: int) -> ModelRunner:
    """A runner for a model in memory, which from now on attends over the runner's pool.

    The choice is noted in the model's configuration: do not share that with other models.
    """
    model.eval()
    model.set_attn_implementation(ATTENTION)
    return ModelRunner(model, n_pages)


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
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
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


def _max_context(config: Any) -> int:
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
