"""A deterministic engine in bfloat16: each reply equals the one of the request alone, whatever runs
beside it, however its prompt is cut, whichever pages it shares, also after it gave way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from sgc.kernels.cpu import library
from sgc.runtime.engine.model.runner import ModelRunner, Needs, UnsupportedModel
from sgc.runtime.engine.model.ways import deterministic_runner, runner_factories
from sgc.runtime.engine.names import POOLINGS
from sgc.runtime.engine.requests.request import Embed, EngineRequest, Generate, SamplingParams
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 499
needs_kernels = pytest.mark.skipif(library.find() is None, reason=library.reason())


def make_model(name: str = "Qwen2", **changes: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024,
        bos_token_id=None, eos_token_id=None, pad_token_id=None, initializer_range=0.15, **changes,
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)


def make_requests(rng: np.random.Generator, n: int) -> list[EngineRequest]:
    """Prompts of 1 to 400 tokens, many of which begin alike; greedy, drawn and embedded."""
    trunks = [rng.integers(1, VOCAB, size) for size in (70, 200, 330)]
    requests = []
    for i in range(n):
        prompt = rng.integers(1, VOCAB, int(rng.integers(1, 70)))
        if i % 4:
            trunk = trunks[i % 3]
            prompt = np.concatenate([trunk[: int(rng.integers(1, len(trunk)))], prompt])
        params = SamplingParams(temperature=float(rng.choice([0, 0.8, 1.3])), seed=i)
        generate = Generate(max_tokens=int(rng.integers(1, 24)), params=params)
        kind = Embed(POOLINGS[i % 3]) if i % 5 == 4 else generate
        requests.append(EngineRequest(i, prompt, kind))
    return requests


def replies(runner: ModelRunner, requests: list[EngineRequest], **options: Any) -> dict[int, list]:
    settings = {"pool_tokens": 4000, "max_context": 600, "vocab_size": VOCAB, **options}
    core = EngineCore(runner, **settings)
    found: dict[int, list] = {request.id: [] for request in requests}
    for request in requests:
        core.submit(request)
    while core.has_work:
        for update in core.step():
            assert update.error is None
            found[update.id] += [*update.new_ids, *update.embedding]
    return found


@pytest.mark.sweep
@needs_kernels
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Qwen2", {}),
        ("Mistral", {"sliding_window": 40}),
        ("Mixtral", {"num_local_experts": 6, "num_experts_per_tok": 2}),
        ("GPTNeoX", {}),
    ],
)
@pytest.mark.parametrize("n_threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_reply_does_not_depend_on_what_runs_beside_it(name, changes, n_threads) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        runner = deterministic_runner(make_model(name, **changes), 4000)
    finally:
        torch.set_num_threads(before)
    requests = make_requests(np.random.default_rng(3), 60)
    alone: dict[int, list] = {}
    for request in requests:
        alone |= replies(runner, [request])
    for options in ({}, {"chunk_tokens": 37}, {"pool_tokens": 900, "chunk_tokens": 128}):
        assert replies(runner, requests, **options) == alone


@needs_kernels
def test_a_reply_does_not_depend_on_guesses() -> None:
    runner = deterministic_runner(make_model(), 4000)
    requests = make_requests(np.random.default_rng(4), 20)
    requests += [replace(request, id=100 + request.id) for request in requests]
    for options in ({"max_running": 1}, {"max_running": 3, "pool_tokens": 900}):
        plain = replies(runner, requests, lookup=False, **options)
        assert replies(runner, requests, **options) == plain


@needs_kernels
def test_only_known_decoders_are_deterministic() -> None:
    config = transformers.GPTJConfig(vocab_size=VOCAB, n_embd=32, n_layer=1, n_head=4, rotary_dim=8)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with pytest.raises(UnsupportedModel, match=r"GPTJForCausalLM is of no family.*--deterministic"):
        runner_factories(model, Needs(deterministic=True))


def test_without_our_own_kernels_it_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(library, "find", lambda: None)
    monkeypatch.setattr(library, "reason", lambda: "there is no C++ compiler")
    with pytest.raises(UnsupportedModel, match="there is no C\\+\\+ compiler"):
        deterministic_runner(make_model(), 1)
