"""The ways to compute a model, fastest first: our own kernels (`decoders/native.py`) or torch
(`decoders/fused.py`) where its family is known, else the model's own modules, with linear layers
packed (`decoders/packed.py`) or not. Attention is always ours, over the pool's pages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sgc.kernels.cpu import library
from sgc.kernels.cpu.attention import NativeAttention
from sgc.kernels.cpu.library import Format
from sgc.kernels.cpu.program import Batch, Program, Writer
from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.parts import tensor_of
from sgc.kernels.torch_attention import TorchAttention
from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.model.adapters.modules import AdaptedModules
from sgc.runtime.engine.model.adapters.weights import Adapters
from sgc.runtime.engine.model.decoders.families.known import decoder_of, is_known
from sgc.runtime.engine.model.decoders.fused import FusedModel
from sgc.runtime.engine.model.decoders.native import Programs, write
from sgc.runtime.engine.model.decoders.packed import pack_linears
from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.recurrent.states import groups_of
from sgc.runtime.engine.model.runner import Compute, Forwards, ModelRunner, Needs, UnsupportedModel

PLAIN = Needs()
NATIVE_DTYPES = (torch.float32, torch.bfloat16)

RunnerFactory = Callable[[Any, int], ModelRunner]
"""(model, n_pages) -> runner: one way to compute a model. It takes the model over."""


class TorchWay:
    """torch's operations; attention is our own kernels' where they are."""

    def __init__(self, name: str, compute: Compute, adapted: AdaptedModules | None = None) -> None:
        self.name = name
        self.adapted = adapted
        self.attention = paged_attention()
        self._compute = compute

    def logits(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        return self._run(self._compute, batch, pool)

    def hidden(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        return self._run(self._compute.hidden, batch, pool)

    @torch.inference_mode()
    def _run(self, compute: Forwards, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        if self.adapted is not None:
            self.adapted.begin(batch.token_adapters, batch.logit_index)
        ragged = Ragged(
            tensor_of(batch.row_starts), tensor_of(batch.pages), tensor_of(batch.page_starts)
        )
        groups = None if batch.states is None else groups_of(batch)
        plan, slots = self.attention.plan(ragged), tensor_of(batch.slots)
        step = Step(self.attention, plan, slots, pool, groups)
        places = batch.positions if batch.places is None else batch.places
        tokens, positions = tensor_of(batch.token_ids), tensor_of(places)
        found = compute(tokens, positions, tensor_of(batch.logit_index), step)
        wide: npt.NDArray[np.float32] = found.float().numpy()
        return wide

    def gather_pages(self, n: int) -> bool:
        """torch allocates its weights in huge pages at once (`process/tuning.py`)."""
        return False


class NativeWay:
    """One call of our own kernels a step."""

    name = "native"

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._bound: KVPool | None = None

    def logits(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        return self._run(self._programs.logits, batch, pool)

    def hidden(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        return self._run(self._programs.hidden, batch, pool)

    def _run(self, program: Program, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        if pool is not self._bound:
            self._bind(pool)
        return program.run(
            Batch(
                batch.token_ids, batch.positions, batch.slots, batch.row_starts, batch.pages,
                batch.page_starts, batch.logit_index, batch.token_adapters,
            )
        )  # fmt: skip

    def gather_pages(self, n: int) -> bool:
        return self._programs.logits.gather_pages(n)

    def _bind(self, pool: KVPool) -> None:
        for index, layer in self._programs.logits.layers.items():
            pages = pool.layer(index, layer.format, layer.format)
            for program in (self._programs.logits, self._programs.hidden):
                program.bind(index, *pages)
            pool.windows.add(layer.window)
        self._bound = pool


def paged_attention() -> PagedAttention:
    kernels = library.find()
    if kernels is None:
        return TorchAttention()
    return NativeAttention(kernels, make_threads(kernels), TorchAttention())


def make_threads(kernels: library.Library) -> library.Threads:
    return library.Threads(kernels, torch.get_num_threads())


def own_kernels(needs: Needs) -> library.Library:
    """Raises `UnsupportedModel` where there are none."""
    kernels = library.find()
    if kernels is None:
        what = needs.options or "this way"
        raise UnsupportedModel(
            f"{what} needs our own kernels, which are not there: {library.reason()}; `sgc doctor` "
            f"says what would help, or leave out {what}"
        )
    return kernels


def native_runner(
    model: Any, n_pages: int, needs: Needs = PLAIN, adapters: Adapters | None = None
) -> ModelRunner:
    """Raises `UnsupportedModel` where our own kernels cannot run the model."""
    kernels = own_kernels(needs)
    if model.dtype not in NATIVE_DTYPES:
        raise UnsupportedModel(
            f"our own kernels do not compute in {str(model.dtype).removeprefix('torch.')}; choose "
            "--dtype bfloat16 or float32"
        )
    writer = Writer(
        kernels, make_threads(kernels), model.dtype, is_deterministic=needs.deterministic,
        packs_as=Format.I8 if needs.weights == "int8" else None,
        pages_as=torch.int8 if needs.kv == "int8" else None,
    )  # fmt: skip
    deltas = None if adapters is None else adapters.of(model)
    way = NativeWay(write(decoder_of(model), writer, deltas))
    if deltas is not None and deltas.unused:
        raise UnsupportedModel(f"our own kernels do not adapt {sorted(deltas.unused)[0]!r}")
    return ModelRunner(model, way, n_pages, needs=needs)


def native_runner_with(needs: Needs, adapters: Adapters | None = None) -> RunnerFactory:
    made = partial(native_runner, needs=needs, adapters=adapters)
    return update_wrapper(made, native_runner)


deterministic_runner = native_runner_with(Needs(deterministic=True))


def fused_runner(model: Any, n_pages: int) -> ModelRunner:
    return ModelRunner(model, TorchWay("fused", FusedModel(decoder_of(model))), n_pages)


def packed_runner(model: Any, n_pages: int) -> ModelRunner:
    runner = transformers_runner(model, n_pages)
    pack_linears(model)
    return runner


def transformers_runner(model: Any, n_pages: int) -> ModelRunner:
    # Importing transformers is slow, and done only where needed.
    from sgc.runtime.engine.model.transformers_model import TransformersModel

    compute = TransformersModel(model)
    way = TorchWay("transformers", compute)
    return ModelRunner(
        model, way, n_pages, keeps_model=True, encoder=compute.encoder, states=compute.states
    )


def adapted_runner(adapters: Adapters) -> RunnerFactory:
    """The model's own modules, with adapters."""

    def packed_modules_with_adapters(model: Any, n_pages: int) -> ModelRunner:
        runner = packed_runner(model, n_pages)
        if runner.states is not None:
            raise UnsupportedModel(
                f"{runner.name} has recurrent layers, which adapters are not applied to: leave "
                "--adapter out"
            )
        way = runner.way
        assert isinstance(way, TorchWay)
        way.adapted = AdaptedModules(model, adapters.deltas)
        return runner

    return packed_modules_with_adapters


def runner_factories(
    model: Any, needs: Needs = PLAIN, adapters: Adapters | None = None
) -> list[RunnerFactory]:
    """The ways to compute a model of transformers, fastest first; the last one always can, unless
    something is needed that only our own kernels do. Raises `UnsupportedModel` if no way is."""
    if is_known(model):
        known = decoder_factories(model.dtype, needs, adapters)
        return known if needs.options else [*known, *_by_modules(adapters)]
    if needs.options:
        raise UnsupportedModel(
            f"{type(model).__name__} is of no family that our own kernels know, so its own modules "
            f"compute it, and they cannot do {needs.options}: leave that out"
        )
    return _by_modules(adapters)


def _by_modules(adapters: Adapters | None) -> list[RunnerFactory]:
    return [packed_runner, transformers_runner] if adapters is None else [adapted_runner(adapters)]


def decoder_factories(
    dtype: torch.dtype, needs: Needs = PLAIN, adapters: Adapters | None = None
) -> list[RunnerFactory]:
    """The ways to compute a model whose decoder is known."""
    native = native_runner_with(needs, adapters) if needs.options or adapters else native_runner
    if needs.options:
        return [native]
    is_native = dtype in NATIVE_DTYPES and library.find() is not None
    fused = [] if adapters else [fused_runner]  # it applies none
    return [*([native] if is_native else []), *fused]
