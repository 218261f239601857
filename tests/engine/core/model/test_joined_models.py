"""Joined contexts on real models: what follows a join has the logits that transformers' own
attention gives with a mask and positions that say the same."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import transformers

from sgc.runtime.engine.cache.page_bytes import HostPages
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.requests.joined import Join, Part
from sgc.runtime.engine.requests.request import EngineRequest, Generate, LogprobsAsked
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 199
SIZES = {"vocab_size": VOCAB, "bos_token_id": None, "eos_token_id": None, "initializer_range": 0.3}
LAYERS = {
    **SIZES, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
MODELS = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LAYERS)),
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**SIZES, n_embd=32, n_layer=2, n_head=4)
    ),
    "phi": lambda: transformers.PhiForCausalLM(transformers.PhiConfig(**LAYERS)),
}

# Three parts, the second with a join in it.
JOINS = (Join(10, (Part(20), Part(40, (Join(25, (Part(31), Part(38))),)), Part(52))),)
TOKENS = np.random.default_rng(0).integers(1, VOCAB, 60)
# Of each token: its position, and the tokens it sees beside those of its own run.
_BEFORE, _FIRST = range(10), range(10, 20)
RUNS = [
    (range(10), 0, []),
    (range(10, 20), 10, [_BEFORE]),
    (range(20, 25), 10, [_BEFORE]),
    (range(25, 31), 15, [_BEFORE, range(20, 25)]),
    (range(31, 38), 15, [_BEFORE, range(20, 25)]),
    (range(38, 40), 22, [_BEFORE, range(20, 38)]),
    (range(40, 52), 10, [_BEFORE]),
    (range(52, 60), 24, [range(52)]),
]


def own_logits(model) -> torch.Tensor:
    """Of transformers' eager attention: [n_tokens, vocab]."""
    n = len(TOKENS)
    seen, positions = torch.zeros(n, n, dtype=torch.bool), torch.zeros(n, dtype=torch.long)
    for run, first, others in RUNS:
        for k, i in enumerate(run):
            positions[i] = first + k
            seen[i, run.start : i + 1] = True
            for other in others:
                seen[i, other.start : other.stop] = True
    mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
    model = copy.deepcopy(model)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        ids = torch.from_numpy(TOKENS)[None]
        return model(input_ids=ids, attention_mask=mask, position_ids=positions[None]).logits[0]


@pytest.mark.parametrize("name", MODELS)
def test_what_follows_a_join_is_what_a_mask_gives(name, tmp_path):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    right = torch.log_softmax(own_logits(model), -1)
    model.save_pretrained(tmp_path)
    runner = load_model(str(tmp_path), dtype="float32", pool_tokens=512)
    core = EngineCore(
        runner, pool_tokens=512, max_context=256, vocab_size=VOCAB, pages=HostPages(runner.pool),
        chunk_tokens=16, check=True,
    )  # fmt: skip
    asked = Generate(1, logprobs=LogprobsAsked(54, top=5))
    core.submit(EngineRequest(0, TOKENS, asked, joins=JOINS))
    updates = []
    while core.has_work:
        updates += core.step()
    (last,) = [update for update in updates if update.final]
    assert last.error is None
    found = last.prompt_logprobs
    for index, logged in zip(range(54, 60), found, strict=True):
        expected = right[index - 1]
        assert logged.logprob == pytest.approx(float(expected[TOKENS[index]]), abs=2e-4)
        for token, logprob in logged.top:
            assert logprob == pytest.approx(float(expected[token]), abs=2e-4)
    (drawn,) = last.logprobs
    assert drawn.logprob == pytest.approx(float(right[-1].max()), abs=2e-4)
