"""Makes an `EngineCore` from the worker's configuration. Imports torch only for real models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from sgc.errors import LoadError
from sgc.runtime.engine.guides.compiler import Compiler
from sgc.runtime.engine.guides.stops import TextStops
from sgc.runtime.engine.model.fake_model import FAKE_MAX_CONTEXT, FAKE_POOL_TOKENS, FakeModel
from sgc.runtime.engine.model.forward import Accuracy, Forward
from sgc.runtime.engine.names import StepOptions
from sgc.runtime.engine.process import garbage
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer, load_tokenizer
from sgc.runtime.engine.worker.disk import Disk
from sgc.runtime.engine.worker.intake import Compile

if TYPE_CHECKING:  # torch is imported only for real models
    from sgc.runtime.engine.disk.pages import PageBytes
    from sgc.runtime.engine.disk.tier import DiskTier
    from sgc.runtime.engine.model.runner import ModelRunner, Needs


NO_HEAD = "this model was saved without its head (lm_head), so it gives embeddings only"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig(StepOptions):
    """model_folder: None for the fake model. eos_ids: the fake model's end tokens."""

    tokenizer_folder: str
    model_folder: str | None = None
    fake: bool = False
    eos_ids: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> WorkerConfig:
        values = json.loads(text)
        unknown = values.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown keys in the worker's configuration: {sorted(unknown)}")
        for name in ("eos_ids", "adapter"):
            values[name] = tuple(values.get(name) or ())
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the engine tells of its model. weights, kv: a dtype, or int8."""

    dtype: str
    device: str
    weights: str
    kv: str
    hidden_size: int
    accuracy: Accuracy | None = None
    takes_images: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """compile: compiles a request's constraint and patterns (`intake.py`). later: work that makes
    the engine quicker, done for a few milliseconds between two steps; returns whether more is
    left."""

    core: EngineCore
    compile: Compile
    facts: Facts
    later: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class _Model:
    forward: Forward
    vocab_size: int
    max_context: int
    pool_tokens: int
    facts: Facts
    later: Callable[[], bool] | None = None
    is_ahead: bool = False
    disk: DiskTier | None = None
    has_head: bool = True
    pages: PageBytes | None = None
    state_slots: int = 0


def load(config: WorkerConfig) -> Loaded:
    """Loads the model; raises with a message for the user if it cannot be served."""
    for name in ("pool_tokens", "max_context", "chunk_tokens", "max_running", "max_waiting"):
        value = getattr(config, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more, not {value}")
    tokenizer = load_tokenizer(config.tokenizer_folder)
    if config.fake or config.model_folder is None:
        model = _fake(config, tokenizer)
    else:
        model = _real(config, config.model_folder, tokenizer)
    core = EngineCore(
        model.forward,
        pool_tokens=model.pool_tokens,
        max_context=model.max_context,
        vocab_size=model.vocab_size,
        chunk_tokens=config.chunk_tokens,
        max_running=config.max_running,
        max_waiting=config.max_waiting,
        policy=config.policy,
        shares_in_batch=config.shares_in_batch,
        make_stop_checker=lambda stops: TextStops(tokenizer, stops),
        check=config.check,
        jumps=config.jumps,
        # On a GPU few rows' steps are graphs, sent ahead: a guess would cost more than it saves.
        lookup=not model.is_ahead if config.lookup is None else config.lookup,
        is_ahead=model.is_ahead,
        disk=model.disk,
        no_generation="" if model.has_head else NO_HEAD,
        pages=model.pages,
        state_slots=model.state_slots,
    )
    return Loaded(core, Compiler(tokenizer, model.vocab_size), model.facts, model.later)


def _fake(config: WorkerConfig, tokenizer: Tokenizer) -> _Model:
    pool_tokens = config.pool_tokens or FAKE_POOL_TOKENS
    kinds = _text_like(tokenizer)
    model = FakeModel(
        pool_tokens,
        tokenizer.vocab_size,
        printable=[*kinds.printable, *config.eos_ids],
        ends=config.eos_ids,
        breaks=kinds.breaks,
    )
    max_context = config.max_context or FAKE_MAX_CONTEXT
    facts = Facts("fake", "cpu", "fake", "fake", model.hidden_size)
    disk = Disk(config, None).tier(model, ("fake",))
    return _Model(
        model, tokenizer.vocab_size, max_context, pool_tokens, facts, disk=disk, pages=model
    )


def _real(config: WorkerConfig, folder: str, tokenizer: Tokenizer) -> _Model:
    garbage.collect()
    disk = Disk(config, folder)
    loads = _runner if config.tensor_parallel == 1 else _shared_runner
    runner = loads(config, folder, tokenizer)
    return _Model(
        runner,
        runner.vocab_size,
        runner.max_context,
        runner.pool_tokens,
        Facts(
            runner.dtype_name,
            runner.device_name,
            runner.weights_name,
            runner.kv_name,
            runner.hidden_size,
            runner.accuracy,
            runner.takes_images,
        ),
        runner.gather_pages,
        runner.is_ahead,
        disk.tier_of(runner),
        runner.has_head,
        _pages_of(runner) if config.tensor_parallel == 1 else None,
        0 if runner.states is None else runner.states.n_slots,
    )


def _pages_of(runner: ModelRunner) -> PageBytes | None:
    """Its pages, where they can be copied."""
    if str(runner.pool.device) != "cpu":
        return None
    from sgc.runtime.engine.cache.page_bytes import HostPages

    return HostPages(runner.pool)


def _runner(config: WorkerConfig, folder: str, tokenizer: Tokenizer) -> ModelRunner:
    from sgc.runtime.engine.model.accuracy import TEXT
    from sgc.runtime.engine.model.adapters.files import parse_adapters, read_adapter
    from sgc.runtime.engine.model.device.places import find_place
    from sgc.runtime.engine.model.device.runners import Sizes
    from sgc.runtime.engine.model.loading import load_model

    return load_model(
        folder,
        dtype=config.dtype,
        pool_tokens=config.pool_tokens,
        max_context=config.max_context,
        threads=config.threads,
        needs=_needs(config),
        text=np.array(tokenizer.encode_prompt([Text(TEXT)]), np.int64),
        place=find_place(config.device, config.attention),
        sizes=Sizes(None, config.memory_fraction, config.chunk_tokens, config.max_running),
        adapters=[read_adapter(name, path) for name, path in parse_adapters(config.adapter)],
    )


def _shared_runner(config: WorkerConfig, folder: str, _: Tokenizer) -> ModelRunner:
    from sgc.runtime.engine.worker.ranks import Asked, load_together

    if options := _needs(config).options:
        raise LoadError(
            f"{options} needs our own CPU kernels, which do not share a model with other processes",
            hint=f"leave out --tensor-parallel or {options}",
        )
    asked = Asked(
        folder, config.dtype, config.device, config.attention, config.threads, config.pool_tokens,
        config.max_context, config.memory_fraction, config.chunk_tokens, config.max_running,
    )  # fmt: skip
    return load_together(asked, config.tensor_parallel)


def _needs(config: WorkerConfig) -> Needs:
    from sgc.runtime.engine.model.runner import Needs

    return Needs(config.deterministic, config.weights, config.kv)


@dataclass(frozen=True, slots=True)
class _Kinds:
    printable: Sequence[int]
    breaks: Sequence[int]


def _text_like(tokenizer: Tokenizer) -> _Kinds:
    """Tokens that look like text, so that fake generations have lines and sentences."""
    printable: list[int] = []
    found: dict[str, int] = {}
    texts = tokenizer.backend.decode_batch([[i] for i in range(tokenizer.vocab_size)])
    for i, text in enumerate(texts):
        if i not in tokenizer.special_ids and text.isascii() and text.isprintable() and text:
            printable.append(i)
        if text in ("\n", ".", "\n\n", ","):
            found.setdefault(text, i)
    return _Kinds([*printable, *found.values()], list(found.values()))
