"""The ways to compute a model on a GPU, fastest first, and how much of it a pool may take."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any

import numpy as np
import torch

from sgc.runtime.engine.model.decoders.families.known import decoder_of, is_known
from sgc.runtime.engine.model.device.model import DeviceModel
from sgc.runtime.engine.model.device.places import Place
from sgc.runtime.engine.model.device.shards import share_of
from sgc.runtime.engine.model.device.way import DeviceWay
from sgc.runtime.engine.model.forward import FlatBatch, Row, flatten
from sgc.runtime.engine.model.runner import ModelRunner, Needs, UnsupportedModel, max_context_of
from sgc.runtime.engine.names import MEMORY_FRACTION
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.request import SamplingParams

_log = logging.getLogger(__name__)
# What is left to whatever allocates beside us: libraries' workspaces, graphs, fragments.
RESERVE_BYTES = 512 << 20
POOL_TOKENS_ELSEWHERE = 16384  # on a device whose memory is not asked for
# From so many on, rows attend together: `flashinfer/inputs.py` and `triton/paged/items.py`.
_N_SHARED, _N_SIBLINGS = 256, 33
_ALL = SamplingParams(1.0, top_p=0.9, top_k=50, logit_bias=((0, 1.0),))


def fused_on(place: Place) -> Callable[[Any, int], ModelRunner]:
    return update_wrapper(partial(fused_layers, place=place), fused_layers)


def modules_on(place: Place) -> Callable[[Any, int], ModelRunner]:
    return update_wrapper(partial(own_modules, place=place), own_modules)


def fused_layers(model: Any, n_pages: int, place: Place) -> ModelRunner:
    longest = max_context_of(model.config.get_text_config())
    decoder = decoder_of(model)
    if not place.group.is_alone:
        decoder = share_of(decoder, place.group, place.device)
    compute = DeviceModel(decoder, place.operations(), longest, place.group)
    capture = None if compute.waits_for_host else place.capture()
    return _runner(model, DeviceWay(compute, place, capture), n_pages)


def own_modules(model: Any, n_pages: int, place: Place) -> ModelRunner:
    """The model's own modules, whose code may wait for the host."""
    from sgc.runtime.engine.model.transformers_model import TransformersModel

    way = DeviceWay(TransformersModel(model), place)
    return _runner(model, way, n_pages, keeps_model=True)


def _runner(model: Any, way: DeviceWay, n_pages: int, keeps_model: bool = False) -> ModelRunner:
    place = way.place
    return ModelRunner(
        model, way, n_pages, keeps_model, device=place.device, device_name=place.name
    )


def device_factories(
    model: Any, needs: Needs, place: Place, is_plain: bool = False
) -> list[Callable[[Any, int], ModelRunner]]:
    """is_plain: whether its decoder is known without a look. Raises `UnsupportedModel` for what
    only our CPU kernels do."""
    if needs.options:
        raise UnsupportedModel(
            f"{needs.options} needs our own CPU kernels, and the model is on {place.device}; add "
            f"--device cpu, or leave out {needs.options}"
        )
    if is_plain:
        return [fused_on(place)]
    if _has_states(model):
        raise UnsupportedModel(
            f"{type(model).__name__} has recurrent layers, whose states are kept on a CPU, by one "
            "process: choose --device cpu, and leave --tensor-parallel out"
        )
    known = [fused_on(place)] if is_known(model) else []
    if place.group.is_alone:
        return [*known, modules_on(place)]
    if not known:
        raise UnsupportedModel(
            f"{type(model).__name__} is of no family whose layers can be dealt to "
            f"{place.group.n} processes; leave --tensor-parallel out"
        )
    return known


def _has_states(model: Any) -> bool:
    from sgc.runtime.engine.model.recurrent.mixers import mixers_of

    return bool(mixers_of(model))


@dataclass(frozen=True, slots=True)
class Sizes:
    """pool_tokens: None is as many as fit. memory_fraction: of the GPU's memory, that the engine
    may take in all. step_tokens, max_rows: the most of one step."""

    pool_tokens: int | None = None
    memory_fraction: float = MEMORY_FRACTION
    step_tokens: int = 512
    max_rows: int = 256


ALL_THAT_FITS = Sizes()


def make_ready(runner: ModelRunner, sizes: Sizes) -> None:
    """Makes the pool and whatever else steps need, so that memory that does not suffice is told at
    load, not by a step. Raises ValueError."""
    way = runner.way
    assert isinstance(way, DeviceWay)
    n_pages, token_bytes = sizes.pool_tokens, runner.pool.token_bytes
    if way.place.is_gpu:
        most = way.place.group.least(_most_pages(runner, way.place, sizes))
        n_pages = n_pages or most
        if n_pages > most or n_pages < 1:
            raise ValueError(_too_little(runner, sizes, most, token_bytes))
    runner.pool = runner.new_pool(n_pages or POOL_TOKENS_ELSEWHERE)
    _run_widest(runner, 1, 1)
    if way.place.is_gpu and runner.max_context > _N_SHARED:
        runner.run(siblings(runner.pool.n_pages))
    way.capture(runner.pool, sizes.max_rows, runner.max_context)


def _most_pages(runner: ModelRunner, place: Place, sizes: Sizes) -> int:
    """The pages that fit beside the model and its largest step, which is run."""
    token_bytes = runner.pool.token_bytes
    runner.pool = runner.new_pool(sizes.step_tokens)
    torch.cuda.synchronize(place.device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(place.device)
    before = torch.cuda.memory_allocated(place.device)
    _run_widest(runner, sizes.step_tokens, sizes.max_rows)
    step_bytes = torch.cuda.max_memory_allocated(place.device) - before
    runner.pool = runner.new_pool(1)
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(place.device)
    left = int(total * sizes.memory_fraction) - (total - free) - step_bytes - RESERVE_BYTES
    _log.info("a step takes %.2f GiB, %.2f are left for pages", step_bytes / 2**30, left / 2**30)
    return left // max(1, token_bytes)


def _run_widest(runner: ModelRunner, n: int, n_draws: int) -> None:
    """A step of `n` tokens with logits of all of them, of which up to `n_draws` are drawn from in
    the ways that take most memory, and whose kernels requests would else wait for."""
    parts = np.split(np.arange(n), range(runner.max_context, n, runner.max_context))
    at = [np.arange(len(pages)) for pages in parts]
    rows = [Row(0 * i, 0, pages, i) for pages, i in zip(parts, at, strict=True)]
    found = runner.run(flatten(rows))
    if isinstance(found, np.ndarray):
        return
    drawn = range(min(n, n_draws))
    for params in (SamplingParams(), _ALL):
        for allowed in (None, np.ones(runner.vocab_size, np.bool_)):
            with contextlib.suppress(NotFinite):  # the model's check has seen real tokens
                found.draw(drawn, [Draw(params, allowed=allowed)] * len(drawn))
    found.log_probabilities([0], [0])


def siblings(n_pages: int) -> FlatBatch:
    """Rows that attend together to what they begin with, by kernels which are compiled when they
    are first run: a request would wait for that, FlashInfer's half a minute."""
    rows = [np.append(np.zeros(_N_SHARED, np.int64), i % n_pages) for i in range(_N_SIBLINGS)]
    first = np.zeros(1, np.int64)
    return flatten([Row(first, _N_SHARED, pages, first) for pages in rows])


def _too_little(runner: ModelRunner, sizes: Sizes, most: int, token_bytes: int) -> str:
    asked = f"a pool of {sizes.pool_tokens} tokens" if sizes.pool_tokens else "a pool"
    return (
        f"{asked} does not fit on {runner.device_name} beside the model: of its memory "
        f"{sizes.memory_fraction:.0%} may be taken, which leaves room for {max(0, most)} tokens of "
        f"{token_bytes} bytes; choose fewer --pool-tokens, a smaller --chunk-tokens, "
        "or a larger --memory-fraction"
    )
