"""Hidden states are those that transformers' own model gives to its head, by every way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from engine.core.model.test_fused import OUR_WAYS, UNDERSTOOD, make_model

from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.model.ways import packed_runner, transformers_runner

TOKENS = np.arange(3, 40)
NAMES = ("Llama", "Qwen3", "GPT2", "OPT", "Gemma3Text", "Cohere", "Qwen3Moe")
FAMILIES = list({name: (name, changes) for name, changes in UNDERSTOOD if name in NAMES}.values())
ALL_WAYS = [*OUR_WAYS, packed_runner, transformers_runner]


def own_hidden(model: transformers.PreTrainedModel) -> torch.Tensor:
    with torch.inference_mode():
        found = model.eval().base_model(input_ids=torch.from_numpy(TOKENS)[None], use_cache=False)
    hidden: torch.Tensor = found.last_hidden_state[0].float()
    return hidden


def hidden_of(runner: ModelRunner, at: np.ndarray) -> torch.Tensor:
    """In two chunks, so that the second reads the first's pages."""
    pages, cut = np.arange(len(TOKENS)), 17
    runner.pool = KVPool(len(TOKENS))
    parts = [(0, cut), (cut, len(TOKENS))]
    found = [
        runner.hidden(flatten([Row(TOKENS[start:end], start, pages[:end],
                                   at[(at >= start) & (at < end)] - start)]))
        for start, end in parts
    ]  # fmt: skip
    return torch.from_numpy(np.concatenate(found))


@pytest.mark.sweep
@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize(("name", "changes"), FAMILIES)
def test_hidden_states_are_the_models_own(name, changes, way) -> None:
    right = own_hidden(make_model(name, changes))
    runner = way(make_model(name, changes), 1)
    assert runner.hidden_size == right.shape[1]
    for at in (np.arange(len(TOKENS)), np.array([2, 20, 36]), np.array([36])):
        torch.testing.assert_close(hidden_of(runner, at), right[at], rtol=1e-4, atol=1e-4)


@pytest.mark.sweep
@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("name", ["Llama", "Qwen2"])
def test_in_bfloat16_they_are_as_near_to_exact_as_the_models_own(name, way) -> None:
    exact = own_hidden(make_model(name, {}, torch.bfloat16).float())
    own = own_hidden(make_model(name, {}, torch.bfloat16))
    found = hidden_of(way(make_model(name, {}, torch.bfloat16), 1), np.arange(len(TOKENS)))

    def error(hidden: torch.Tensor) -> float:
        return float(((hidden - exact).norm(dim=-1) / exact.norm(dim=-1)).median())

    assert error(found) < 1.5 * error(own)


@pytest.mark.parametrize("way", ALL_WAYS)
def test_logits_after_hidden_states_are_what_they_were(way) -> None:
    runner = way(make_model("Llama", {}), 1)
    runner.pool = KVPool(len(TOKENS))
    pages = np.arange(len(TOKENS))
    batch = flatten([Row(TOKENS, 0, pages, np.array([5, 36]))])
    before = runner.logits(batch)
    runner.hidden(batch)
    np.testing.assert_array_equal(runner.logits(batch), before)
    nothing = flatten([Row(TOKENS, 0, pages, np.arange(0))])
    assert runner.hidden(nothing).shape == (0, runner.hidden_size)
