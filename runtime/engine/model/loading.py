"""Loads a model, checks it, and sizes its pool.

It loads only safetensors, runs no remote code and fetches nothing. It refuses a model whose logits
differ on our pool (`self_check.py`). The step process calls it (`worker/load.py`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from sgc.errors import LoadError
from sgc.runtime.engine.cache.states import LEAST_SLOTS
from sgc.runtime.engine.images.families import FAMILIES
from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.accuracy import OwnText, accuracy_of, own_text
from sgc.runtime.engine.model.adapters.files import AdapterFiles
from sgc.runtime.engine.model.adapters.weights import Adapters
from sgc.runtime.engine.model.device.places import CPU, Place
from sgc.runtime.engine.model.device.runners import (
    ALL_THAT_FITS,
    Sizes,
    device_factories,
    make_ready,
)
from sgc.runtime.engine.model.plain_files import find_plain
from sgc.runtime.engine.model.recurrent.states import StatePool
from sgc.runtime.engine.model.runner import ModelRunner, Needs, UnsupportedModel
from sgc.runtime.engine.model.self_check import (
    OwnAnswers,
    check_model,
    own_answers,
)
from sgc.runtime.engine.model.sight.check import OwnSight, check_sight, own_sight
from sgc.runtime.engine.model.ways import (
    PLAIN,
    RunnerFactory,
    decoder_factories,
    own_kernels,
    runner_factories,
)
from sgc.runtime.engine.process.tuning import keep_freed_memory

MAX_POOL_TOKENS = 65536
MAX_STATE_SLOTS = 1024
_DTYPES = ("float32", "bfloat16", "float16")
_log = logging.getLogger(__name__)

# A model this small is no faster on two threads (2 cores, torch 2.13), and far slower when other
# processes run: OpenMP's threads spin while they wait for one that is not scheduled.
ONE_THREAD_BELOW = 4_000_000


def load_model(
    folder: str,
    *,
    dtype: str = "auto",
    pool_tokens: int | None = None,
    max_context: int | None = None,
    threads: int | None = None,
    needs: Needs = PLAIN,
    text: Ints | None = None,
    place: Place = CPU,
    sizes: Sizes = ALL_THAT_FITS,
    adapters: Sequence[AdapterFiles] = (),
) -> ModelRunner:
    """Loads, checks and sizes a model. dtype: "auto" (as saved), "float32", "bfloat16" or
    "float16".

    needs: what only our own kernels can do: `UnsupportedModel` where they cannot. text: ids, on
    which it is measured what eight bits cost. sizes: of a GPU's memory. adapters: the first
    is number 1 of a batch.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if dtype != "auto" and dtype not in _DTYPES:
        raise ValueError(f'dtype must be "auto", {" or ".join(map(repr, _DTYPES))}, not {dtype!r}')
    keep_freed_memory()
    place.take()
    if needs.options and place.has_own_kernels:
        own_kernels(needs)
    if adapters:
        refuse_with_adapters(needs, place)
    measured = text if needs.in_eight_bits else None
    loaded = Adapters(adapters) if adapters else None
    loading = _Loading(folder, dtype, threads is None, needs, measured, place, loaded)
    runner = loading.plain() or loading.transformers()
    if max_context is not None:
        if max_context > runner.max_context:
            raise ValueError(f"max_context {max_context} is above the model's {runner.max_context}")
        runner.max_context = max_context
    if not place.has_own_kernels:
        make_ready(runner, replace(sizes, pool_tokens=pool_tokens))
        return runner
    n_pages = pool_tokens or default_pool_tokens(runner.pool.token_bytes)
    _check_pool(n_pages, runner.pool.token_bytes)
    formats = runner.pool.formats
    runner.pool = runner.new_pool(n_pages)
    runner.pool.formats = formats
    if runner.states is not None:
        size_states(runner.states, runner.name)
    return runner


@dataclass(frozen=True, slots=True)
class _Loading:
    """The ways to load a folder. chooses_threads: whether the model's size decides them."""

    folder: str
    dtype: str
    chooses_threads: bool
    needs: Needs
    text: Ints | None
    place: Place
    adapters: Adapters | None = None

    def plain(self) -> ModelRunner | None:
        """Without transformers, if our own loader knows the model and it passes its check."""
        files = find_plain(Path(self.folder), self.dtype)
        if files is None:
            return None
        self._choose_threads(files.num_parameters())  # before anything starts a second thread
        model = files.load(self.place.loads_on)
        own = None if model is None else self._own(model)
        if model is not None and self.adapters is not None:
            self.adapters.check(model)
        for factory in self._factories_of_plain(files.dtype):
            model = model or files.load(self.place.loads_on)
            if model is None or own is None:
                return None
            if (runner := self._tried(factory, model, own)) is not None:
                return runner
            model = None  # so that it is not in memory twice
        return None

    def transformers(self) -> ModelRunner:
        model = self._loaded()
        self._choose_threads(model.num_parameters())
        if self.adapters is not None:
            self.adapters.check(model)
        own = self._own(model)
        *faster, slowest = self._factories(model)
        for factory in faster:
            if (runner := self._tried(factory, model, own)) is not None:
                return runner
            del model  # so that it is not in memory twice
            model = self._loaded()
        runner = slowest(model, 1)
        own.check(runner)
        return runner

    def _loaded(self) -> Any:
        from sgc.runtime.engine.model.transformers_files import load_transformers_model

        return load_transformers_model(self.folder, self.dtype).to(self.place.loads_on)

    def _factories_of_plain(self, dtype: torch.dtype) -> list[RunnerFactory]:
        if self.place.has_own_kernels:
            return decoder_factories(dtype, self.needs, self.adapters)
        return device_factories(None, self.needs, self.place, is_plain=True)

    def _factories(self, model: Any) -> list[RunnerFactory]:
        if self.place.has_own_kernels:
            return runner_factories(model, self.needs, self.adapters)
        return device_factories(model, self.needs, self.place)

    def _tried(self, factory: Any, model: Any, own: _Own) -> ModelRunner | None:
        """The runner; None if its logits differ from the model's own (`own`) and another way may
        compute the model."""
        try:
            runner: ModelRunner = factory(model, 1)
            own.check(runner)
        except Exception as error:
            if self.needs.options:
                raise
            _log.warning("%s fails its check, trying without: %s", factory.__name__, error)
            return None
        return runner

    def _own(self, model: Any) -> _Own:
        text = None if self.text is None else own_text(model, self.text)
        return _Own(own_answers(model), text, self._own_sight(model))

    def _own_sight(self, model: Any) -> OwnSight | None:
        if getattr(model.config, "model_type", None) not in FAMILIES:
            return None
        if not self.place.has_own_kernels:
            raise UnsupportedModel(
                f"{type(model).__name__} takes images, which this engine computes on CPUs only: "
                "choose --device cpu"
            )
        return own_sight(model, Path(self.folder))

    def _choose_threads(self, n_parameters: int) -> None:
        if self.chooses_threads and n_parameters < ONE_THREAD_BELOW:
            torch.set_num_threads(1)


@dataclass(frozen=True, slots=True)
class _Own:
    """What the model itself answers."""

    answers: OwnAnswers
    text: OwnText | None
    sight: OwnSight | None

    def check(self, runner: ModelRunner) -> None:
        """Raises `UnsupportedModel`; measures the runner on the text."""
        check_model(runner, self.answers)
        if self.sight is not None:
            check_sight(runner, self.sight)
        if self.text is not None:
            runner.accuracy = accuracy_of(runner, self.text)


def refuse_with_adapters(needs: Needs, place: Place) -> None:
    """Raises `LoadError` for what adapters do not go with."""
    if not place.has_own_kernels:
        raise LoadError("--adapter is for models on a CPU", hint="choose --device cpu")
    if needs.weights == "int8":
        raise LoadError(
            "--adapter needs the weights in the model's own dtype, not --weights int8",
            hint="leave one of them out",
        )


def default_pool_tokens(token_bytes: int) -> int:
    """The tokens that fit in a quarter of the memory, within bounds."""
    return max(1024, min(MAX_POOL_TOKENS, _memory_bytes() // 4 // max(1, token_bytes)))


def size_states(states: StatePool, name: str) -> None:
    """Makes as many slots as fit in an eighth of the memory, within bounds."""
    n_bytes = max(1, states.slot_bytes)
    states.resize(max(LEAST_SLOTS, min(MAX_STATE_SLOTS, _memory_bytes() // 8 // n_bytes)))
    _log.warning(
        "%s has recurrent layers: a prefix is found up to a snapshot of their states, of which "
        "there are %d (%.1f MiB each); prompts are not joined, and no tokens are guessed",
        name, states.n_slots, n_bytes / 2**20,
    )  # fmt: skip


def _check_pool(n_pages: int, token_bytes: int) -> None:
    """Refuses a pool larger than the memory now; it is allocated when the model first runs."""
    if n_pages * token_bytes > _memory_bytes():
        raise ValueError(
            f"a pool of {n_pages} tokens takes {n_pages * token_bytes / 2**30:.1f} GiB, of "
            f"{_memory_bytes() / 2**30:.1f} GiB of memory; choose fewer with --pool-tokens"
        )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
