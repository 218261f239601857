"""The ways to compute a model, fastest first: our own kernels (`decoders/native.py`) or torch
(`decoders/fused.py`) where its family is known, else the model's own modules, with linear layers
packed (`decoders/packed.py`) or not. Attention is always ours, over the pool's pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.cpu import library
from sgc.kernels.cpu.attention import NativeAttention
from sgc.kernels.cpu.program import Batch, Program, Writer
from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.parts import tensor_of
from sgc.kernels.torch_cpu import TorchCpuAttention
from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.model.decoders.families.known import decoder_of, is_known
from sgc.runtime.engine.model.decoders.fused import FusedModel
from sgc.runtime.engine.model.decoders.native import write
from sgc.runtime.engine.model.decoders.packed import pack_linears
from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.runner import ModelRunner, UnsupportedModel

Compute = Callable[[Tensor, Tensor, Tensor, Step], Tensor]
"""(token_ids [n_tokens], positions [n_tokens], wanted [n_logits], step) -> [n_logits, vocab]"""

RunnerFactory = Callable[[Any, int], ModelRunner]
"""(model, n_pages) -> runner: one way to compute a model. It takes the model over."""


class TorchWay:
    """torch's operations; attention is our own kernels' where they are."""

    def __init__(self, name: str, compute: Compute) -> None:
        self.name = name
        self.attention = paged_attention()
        self._compute = compute

    @torch.inference_mode()
    def logits(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        ragged = Ragged(
            tensor_of(batch.row_starts), tensor_of(batch.pages), tensor_of(batch.page_starts)
        )
        step = Step(self.attention, self.attention.plan(ragged), tensor_of(batch.slots), pool)
        tokens, positions = tensor_of(batch.token_ids), tensor_of(batch.positions)
        logits = self._compute(tokens, positions, tensor_of(batch.logit_index), step)
        wide: npt.NDArray[np.float32] = logits.float().numpy()
        return wide


class NativeWay:
    """One call of our own kernels a step."""

    name = "native"

    def __init__(self, program: Program) -> None:
        self._program = program
        self._bound: KVPool | None = None

    def logits(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        if pool is not self._bound:
            self._bind(pool)
        return self._program.run(
            Batch(
                batch.token_ids, batch.positions, batch.slots, batch.row_starts, batch.pages,
                batch.page_starts, batch.logit_index,
            )
        )  # fmt: skip

    def _bind(self, pool: KVPool) -> None:
        for index, layer in self._program.layers.items():
            like = torch.empty(0, layer.n_kv_heads, layer.head_dim, dtype=self._program.dtype)
            self._program.bind(index, *pool.layer(index, like, like))
            pool.windows.add(layer.window)
        self._bound = pool


def paged_attention() -> PagedAttention:
    kernels = library.find()
    if kernels is None:
        return TorchCpuAttention()
    return NativeAttention(kernels, make_threads(kernels), TorchCpuAttention())


def make_threads(kernels: library.Library) -> library.Threads:
    return library.Threads(kernels, torch.get_num_threads())


def native_runner(model: Any, n_pages: int, deterministic: bool = False) -> ModelRunner:
    kernels = library.find()
    if kernels is None:
        raise UnsupportedModel(f"our own kernels are not there: {library.reason()}")
    threads = make_threads(kernels)
    writer = Writer(kernels, threads, model.dtype, is_deterministic=deterministic)
    return ModelRunner(model, NativeWay(write(decoder_of(model), writer)), n_pages)


def deterministic_runner(model: Any, n_pages: int) -> ModelRunner:
    return native_runner(model, n_pages, deterministic=True)


def fused_runner(model: Any, n_pages: int) -> ModelRunner:
    return ModelRunner(model, TorchWay("fused", FusedModel(decoder_of(model))), n_pages)


def packed_runner(model: Any, n_pages: int) -> ModelRunner:
    runner = transformers_runner(model, n_pages)
    pack_linears(model)
    return runner


def transformers_runner(model: Any, n_pages: int) -> ModelRunner:
    # Importing transformers is slow, and done only where needed.
    from sgc.runtime.engine.model.transformers_model import TransformersModel

    way = TorchWay("transformers", TransformersModel(model))
    return ModelRunner(model, way, n_pages, keeps_model=True)


def runner_factories(model: Any, deterministic: bool = False) -> list[RunnerFactory]:
    """The ways to compute a model of transformers, fastest first; the last one always can, unless
    the model must be deterministic. Raises `UnsupportedModel` if no way is."""
    if is_known(model):
        known = decoder_factories(model.dtype, deterministic)
        return known if deterministic else [*known, packed_runner, transformers_runner]
    if deterministic:
        name = type(model).__name__
        raise UnsupportedModel(f"{name} cannot be deterministic: its own modules compute it")
    return [packed_runner, transformers_runner]


def decoder_factories(dtype: torch.dtype, deterministic: bool = False) -> list[RunnerFactory]:
    """The ways to compute a model whose decoder is known."""
    if deterministic:
        return [deterministic_runner]
    is_native = dtype in (torch.float32, torch.bfloat16) and library.find() is not None
    return [*([native_runner] if is_native else []), fused_runner]
