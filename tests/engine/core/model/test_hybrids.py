"""Models with recurrent layers, tiny and random, in float32: in chunks, from snapshots, in batches
and when memory is short they generate what transformers generates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from engine.core.model.test_architectures import LATENT, VOCAB, make_model

from sgc.errors import LoadError
from sgc.runtime.engine.model.adapters.weights import Adapters
from sgc.runtime.engine.model.device.places import CPU
from sgc.runtime.engine.model.device.runners import device_factories
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.recurrent import mixers
from sgc.runtime.engine.model.runner import ModelRunner, Needs, UnsupportedModel
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.model.ways import adapted_runner, transformers_runner
from sgc.runtime.engine.names import MEAN, StepOptions
from sgc.runtime.engine.requests.request import Embed, Generate
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.worker.disk import Disk

DELTA = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8, "num_hidden_layers": 4,
}  # fmt: skip
EXPERTS = {
    "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}  # fmt: skip
MAMBA2 = {
    "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1,
    "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 16,
}  # fmt: skip
CONV = {"layer_types": ["conv", "full_attention"]}
FAMILIES = {
    "lfm2": ("Lfm2", CONV),
    "qwen3_next": ("Qwen3Next", {**DELTA, **EXPERTS}),
    "jamba": ("Jamba", {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4,
                        "mamba_dt_rank": 4, "num_experts": 2}),
    "lfm2_moe": ("Lfm2Moe", {**CONV, **EXPERTS, "num_dense_layers": 1}),
    "qwen3_5_text": ("Qwen3_5Text", DELTA),
    "qwen3_5_moe_text": ("Qwen3_5MoeText", {**DELTA, **EXPERTS}),
    "olmo_hybrid": ("OlmoHybrid", {**DELTA, "linear_num_key_heads": 4}),
    "bamba": ("Bamba", {**MAMBA2, "attn_layer_indices": [1]}),
    "granitemoehybrid": ("GraniteMoeHybrid", {**MAMBA2, "layer_types": ["mamba", "attention"],
                                              "num_local_experts": 4, "num_experts_per_tok": 2,
                                              "shared_intermediate_size": 32}),
    "falcon_h1": ("FalconH1", {**MAMBA2, "mamba_d_ssm": 64}),
    "nemotron_h": ("NemotronH", {"mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 8,
                                 "n_groups": 1, "conv_kernel": 4, "chunk_size": 16,
                                 "layers_block_type": ["mamba", "attention"]}),
    "bailing_hybrid": ("BailingHybrid", {"layer_group_size": 2, **LATENT}),
    "nemotron_h, mlp": ("NemotronH", {"mamba_num_heads": 4, "mamba_head_dim": 16,
                                      "ssm_state_size": 8, "n_groups": 1, "conv_kernel": 4,
                                      "chunk_size": 16, "num_hidden_layers": 3,
                                      "layers_block_type": ["mamba", "attention", "mlp"]}),
    "kimi_linear": ("KimiLinear", {**LATENT, "linear_head_dim": 8, "linear_num_heads": 4,
                                   "layer_types": ["linear_attention", "full_attention"]}),
    "mamba": ("Mamba", {"state_size": 4}),
    "mamba2": ("Mamba2", {"state_size": 4, "num_heads": 4, "head_dim": 16, "n_groups": 1,
                          "chunk_size": 16}),
    "falcon_mamba": ("FalconMamba", {"state_size": 4}),
}  # fmt: skip
QUICK = ("lfm2", "qwen3_next", "jamba")
ALL = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FAMILIES]
MAMBAS = {"mamba_d_state": 8, "num_hidden_layers": 4,
          "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]}  # fmt: skip
ITSELF = "do not attend through transformers' attention interface"
REFUSED = {
    "zamba2": ("Zamba2", {**MAMBAS, "mamba_headdim": 16, "n_mamba_heads": 4, "chunk_size": 16},
               "its logits over the engine's pool differ"),
    "rwkv": ("Rwkv", {"attention_hidden_size": 32}, ITSELF),
    "recurrent_gemma": ("RecurrentGemma", {"num_hidden_layers": 3}, ITSELF),
    "minimax": ("MiniMax", {"num_local_experts": 4, "block_size": 16,
                            "layer_types": ["linear_attention", "full_attention"]}, ITSELF),
}  # fmt: skip
N_NEW = 10


@cache
def prompts() -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    shared = rng.integers(1, VOCAB, 40)
    tails = [rng.integers(1, VOCAB, n) for n in (0, 1, 3, 17, 30)]
    alone = [rng.integers(1, VOCAB, n) for n in (1, 2, 33, 70)]
    found = [*(np.concatenate([shared, tail]) for tail in tails), *alone]
    return [*found, found[3]]


@cache
def generated(name: str) -> list[list[int]]:
    """By transformers, one by one."""
    model = make_model(*FAMILIES[name])
    found = []
    for prompt in prompts():
        ids = torch.from_numpy(prompt)[None]
        said = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=N_NEW,
                              do_sample=False, eos_token_id=None, pad_token_id=0)  # fmt: skip
        found.append(said[0, len(prompt) :].tolist())
    return found


def make_runner(name: str, n_slots: int, pool: int) -> ModelRunner:
    runner = transformers_runner(make_model(*FAMILIES[name]), pool)
    assert runner.states is not None
    runner.states.resize(n_slots)
    return runner


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("n_slots", "pool", "chunk", "per_step"),
    [
        (64, 1024, 512, None),
        pytest.param(64, 1024, 24, 2, marks=pytest.mark.slow),
        (4, 100, 24, 2),
        pytest.param(2, 100, 16, None, marks=pytest.mark.slow),
    ],
)
def test_greedy_tokens_are_transformers_own(lab, name, n_slots, pool, chunk, per_step) -> None:
    """Together and one after the other, with prefixes shared in a batch, found again and evicted,
    with few slots and preemption."""
    core = EngineCore(
        make_runner(name, n_slots, pool), pool_tokens=pool, max_context=200, vocab_size=VOCAB,
        chunk_tokens=chunk, check=True, state_slots=n_slots, headroom_tokens=1,
    )  # fmt: skip
    requests = [lab.request(i, prompt, Generate(N_NEW)) for i, prompt in enumerate(prompts())]
    outcomes = lab.drive(core, requests, per_step=per_step)
    assert [outcomes[i].ids for i in range(len(requests))] == generated(name)
    counters, stats = core.stats().counters, core.stats()
    if pool == 1024 and chunk == 512:
        n_shared, n_again = 40, len(prompts()[3])
        n_all = sum(map(len, prompts()))
        assert counters.cached_tokens == n_all - counters.computed_tokens
        assert counters.computed_tokens <= n_all - 4 * (n_shared - 1) - (n_again - 1) + 4
    elif pool == 100:
        assert stats.preemptions > 0 or n_slots == 2
        assert stats.evicted_tokens > 0


@pytest.mark.parametrize("name", ALL)
def test_the_check_at_load_takes_them_and_sees_a_wrong_state(name, monkeypatch) -> None:
    model = make_model(*FAMILIES[name])
    own = own_answers(model)
    check_model(transformers_runner(model, 1), own)
    monkeypatch.setattr(mixers._Apart, "_read", lambda self, *_: None)
    with pytest.raises(UnsupportedModel, match="its logits over the engine's pool differ"):
        check_model(transformers_runner(make_model(*FAMILIES[name]), 1), own)


def test_a_folder_is_loaded_and_what_does_not_go_with_it_is_refused(tmp_path, caplog) -> None:
    make_model(*FAMILIES["lfm2"]).save_pretrained(tmp_path)
    runner = load_model(str(tmp_path), pool_tokens=64)
    assert runner.states is not None
    assert runner.states.n_slots == 1024
    assert "Lfm2ForCausalLM has recurrent layers: a prefix is found up to a snapshot" in caplog.text
    disk = Disk(StepOptions(kv_dir=str(tmp_path / "kv")), None)
    with pytest.raises(LoadError, match="Lfm2ForCausalLM has recurrent layers, whose states"):
        disk.tier_of(runner)
    with pytest.raises(UnsupportedModel, match="choose --device cpu, and leave --tensor-parallel"):
        device_factories(make_model(*FAMILIES["lfm2"]), Needs(), CPU)
    with pytest.raises(UnsupportedModel, match="leave --adapter out"):
        adapted_runner(Adapters([]))(make_model(*FAMILIES["lfm2"]), 1)


def test_embeddings_are_of_the_models_own_hidden_states(lab) -> None:
    runner, prompt = make_runner("jamba", 8, 200), prompts()[4]
    core = EngineCore(runner, pool_tokens=200, max_context=200, vocab_size=VOCAB, chunk_tokens=24,
                      check=True, state_slots=8)  # fmt: skip
    found = lab.drive(core, [lab.request(1, prompt, Embed(MEAN))])[1].last.embedding
    with torch.inference_mode():
        own = make_model(*FAMILIES["jamba"]).model(input_ids=torch.from_numpy(prompt)[None])
    right = own.last_hidden_state[0].mean(0)
    np.testing.assert_allclose(found, right, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_by_name(name, tmp_path) -> None:
    prefix, changes, why = REFUSED[name]
    make_model(prefix, changes).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match=f"{prefix}ForCausalLM is not supported: .*{why}"):
        load_model(str(tmp_path), pool_tokens=16)
