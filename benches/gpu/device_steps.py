"""Steps of a whole model, with weights made here, and the papers' workloads on its engine."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from device_kernels import Limits, Size
from device_timing import Found, median_s, wait

sys.path.append(str(Path(__file__).resolve().parent.parent / "engine"))

from drive import Drive
from other_caches import CACHES
from workloads import make

from sgc.runtime.engine.model.device.places import Place
from sgc.runtime.engine.model.device.runners import Sizes, fused_on, make_ready
from sgc.runtime.engine.model.device.way import DeviceWay
from sgc.runtime.engine.model.forward import FlatBatch, Forward, Row, flatten
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.step.core import EngineCore

SHAPES = ("few_shot", "few_shot_select", "tree_of_thought", "chat_short", "judge")


@dataclass(frozen=True, slots=True)
class ModelSize:
    """An 8B Llama's, or a tiny one's."""

    hidden: int = 4096
    inner: int = 14336
    layers: int = 32

    def config(self, size: Size) -> Any:
        from transformers import LlamaConfig

        return LlamaConfig(
            vocab_size=size.vocab, hidden_size=self.hidden, intermediate_size=self.inner,
            num_hidden_layers=self.layers, num_attention_heads=size.n_heads,
            num_key_value_heads=size.n_kv_heads, head_dim=size.head_dim,
            max_position_embeddings=32768, tie_word_embeddings=False,
        )  # fmt: skip


FULL_MODEL, TINY_MODEL = ModelSize(), ModelSize(64, 96, 2)


def make_runner(
    place: Place, size: Size, of_model: ModelSize, dtype: torch.dtype, pool_tokens: int | None
) -> ModelRunner:
    from transformers import AutoModelForCausalLM

    with torch.device(place.device):
        model = AutoModelForCausalLM.from_config(of_model.config(size), dtype=dtype)
    runner = fused_on(place)(model.eval(), 10)
    runner.run(_decode(1, 2, 10))  # tells the size of a page
    max_rows = max(size.rows)
    make_ready(runner, Sizes(pool_tokens, step_tokens=max(size.chunks), max_rows=max_rows))
    with torch.inference_mode():  # what is in the pool may be no numbers
        for k_pool, v_pool in runner.pool.layers.values():
            k_pool.normal_()
            v_pool.normal_()
    return runner


def _decode(n_rows: int, context: int, n_pages: int) -> FlatBatch:
    rng = np.random.default_rng(0)
    pages = rng.permutation(n_pages)[: n_rows * context].reshape(n_rows, context)
    return flatten([Row(np.array([7]), context - 1, row, np.array([0])) for row in pages])


def steps(runner: ModelRunner, size: Size, limits: Limits) -> Iterator[Found]:
    """Decoding steps, the host's part included, as a share of what reading weights, K and V once
    takes, with and without graphs; and how far both are from each other."""
    way = runner.way
    assert isinstance(way, DeviceWay)
    device = way.place.device
    weight_bytes = _weight_bytes(runner)
    for n in size.rows:
        if n * size.context > runner.pool.n_pages:
            continue
        batch = _decode(n, size.context, runner.pool.n_pages)
        least_s = (weight_bytes + n * size.context * runner.pool.token_bytes) / limits.bytes_s
        graphs, logits = way._graphs, []
        for what in ("graphs", "no graphs"):
            way._graphs = graphs if what == "graphs" else None
            if what == "graphs" and graphs is None:
                continue
            took = median_s([lambda batch=batch: runner.run(batch)], device, is_step=True)
            logits.append(runner.logits(batch))
            case = f"{n} rows of {size.context}, {what}"
            yield Found("decoding step", case, took * 1e3, "ms", least_s / took)
        way._graphs = graphs
        error = float(np.linalg.norm(logits[0] - logits[-1]) / np.linalg.norm(logits[-1]))
        yield Found("graphs' logits", f"{n} rows of {size.context}", 100 * error, "% off")
    for n in size.chunks:
        pages = np.arange(n)
        chunk = flatten([Row(pages % 100, 0, pages, np.array([n - 1]))])
        took = median_s([lambda chunk=chunk: runner.run(chunk)], device, is_step=True)
        share = 2.0 * weight_bytes / runner.dtype.itemsize * n / limits.flops / took
        yield Found("chunk", f"{n} tokens", took * 1e3, "ms", share)


def _weight_bytes(runner: ModelRunner) -> int:
    """What a step reads of them: all but the table of embeddings."""
    config = runner.config
    per_layer = (
        config.hidden_size
        * config.head_dim
        * (2 * config.num_attention_heads + 2 * config.num_key_value_heads)
        + 3 * config.hidden_size * config.intermediate_size
    )
    n = config.num_hidden_layers * per_layer + config.hidden_size * config.vocab_size
    return int(n * runner.dtype.itemsize)


class _Instant:
    """A model that takes no time: logits lie ready on the device."""

    def __init__(self, place: Place, n: int, vocab: int) -> None:
        self._place = place
        self._values = torch.randn(n, vocab, device=place.device)

    def run(self, batch: FlatBatch) -> Any:
        return self._place.logits(self._values[: len(batch.logit_index)])


def host(runner: ModelRunner, size: Size, scale: float) -> Iterator[Found]:
    """What a step takes beside the model: scheduling, the radix tree, sampling on the device."""
    way = runner.way
    assert isinstance(way, DeviceWay)
    for n in size.rows:
        instant: Any = _Instant(way.place, max(n, 64), runner.vocab_size)
        core = _core(runner, instant, lookup=False)
        programs = make("few_shot", n, vocab=runner.vocab_size, scale=scale)
        started_s = time.perf_counter()
        Drive(core, programs).run()
        took_s = time.perf_counter() - started_s
        n_steps = core.stats().counters.steps
        yield Found(
            "beside the model", f"few_shot, {n} programs", took_s / n_steps * 1e3, "ms/step"
        )


def workloads(runner: ModelRunner, n_programs: int, scale: float) -> Iterator[Found]:
    """The papers' workloads: programs a second, and times that without the cache, without cascades
    or graphs."""
    way = runner.way
    assert isinstance(way, DeviceWay)
    graphs = way._graphs
    variants: dict[str, dict[str, Any]] = {
        "whole": {}, "no cache": CACHES["none"], "no sharing in a batch": {"shares_in_batch": False}
    }  # fmt: skip
    if graphs is not None:
        variants["no graphs"] = {}
    for shape in SHAPES:
        for what, options in variants.items():
            way._graphs = None if what == "no graphs" else graphs
            core = _core(runner, runner, **options)
            programs = make(shape, n_programs, vocab=runner.vocab_size, scale=scale)
            wait(way.place.device)
            started_s = time.perf_counter()
            Drive(core, programs).run()
            rate = n_programs / (time.perf_counter() - started_s)
            yield Found("workload", f"{shape}, {what}", rate, "programs/s")
    way._graphs = graphs


def _core(runner: ModelRunner, forward: Forward, **options: Any) -> EngineCore:
    gc.collect()
    return EngineCore(
        forward, pool_tokens=runner.pool.n_pages, max_context=runner.max_context,
        vocab_size=runner.vocab_size, is_ahead=runner.is_ahead, **{"chunk_tokens": 2048, **options},
    )  # fmt: skip
