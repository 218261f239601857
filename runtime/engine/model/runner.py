"""Runs a Hugging Face causal LM on the engine's flat batches: a `Forward`.

Our own code computes the model if it knows its family (`fused.py`), else the model's own code does
(`transformers_model.py`; importing transformers is slow, and done only where needed). Attention is
always ours, over the pool's pages. `loading.py` loads and checks a runner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.parts import tensor_of
from sgc.kernels.torch_cpu import TorchCpuAttention
from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.fused import FusedModel, is_understood
from sgc.runtime.engine.model.packed import pack_linears

Compute = Callable[[Tensor, Tensor, Tensor, Step], Tensor]
"""(token_ids [n_tokens], positions [n_tokens], wanted [n_logits], step) -> [n_logits, vocab]"""


class UnsupportedModel(ValueError):
    """A model that would not be served faithfully."""


class ModelRunner:
    """A model, the code that computes it, and a pool of `n_pages` tokens."""

    device_name = "cpu"

    def __init__(
        self, model: Any, compute: Compute, n_pages: int, keeps_model: bool = False
    ) -> None:
        """model: the model behind `compute`. keeps_model: whether the runner keeps it."""
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
    def logits(self, batch: FlatBatch) -> Tensor:
        """[n_logits, vocab]"""
        ragged = Ragged(
            tensor_of(batch.row_starts), tensor_of(batch.pages), tensor_of(batch.page_starts)
        )
        step = Step(self.attention, self.attention.plan(ragged), tensor_of(batch.slots), self.pool)
        tokens, positions = tensor_of(batch.token_ids), tensor_of(batch.positions)
        return self._compute(tokens, positions, tensor_of(batch.logit_index), step)


def fused_runner(model: Any, n_pages: int) -> ModelRunner:
    return ModelRunner(model, FusedModel(model), n_pages)


def packed_runner(model: Any, n_pages: int) -> ModelRunner:
    runner = transformers_runner(model, n_pages)
    pack_linears(model)
    return runner


def transformers_runner(model: Any, n_pages: int) -> ModelRunner:
    from sgc.runtime.engine.model.transformers_model import TransformersModel

    return ModelRunner(model, TransformersModel(model), n_pages, keeps_model=True)


Way = Callable[[Any, int], ModelRunner]
"""(model, n_pages) -> runner: one way to compute a model."""


def ways(model: Any) -> list[Way]:
    """The ways to compute a model of transformers, fastest first."""
    fused = [fused_runner] if is_understood(model) else []
    return [*fused, packed_runner, transformers_runner]


def max_context_of(config: Any) -> int:
    """The longest context in which each position's K and V depend only on its prefix."""
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
