"""Our own forward, packed linear layers, and what is chosen for which model."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from engine.core.runners import logits_of, runner_of
from torch import nn

from sgc.kernels.layers import Rope
from sgc.runtime.engine.model.decoders import families, packed
from sgc.runtime.engine.model.decoders.decoder import Product
from sgc.runtime.engine.model.decoders.families import is_known
from sgc.runtime.engine.model.decoders.packed import Linear, PackedModule, can_pack
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.model.ways import fused_runner, packed_runner

VOCAB = 199
COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "initializer_range": 0.3,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 128,
}
UNDERSTOOD = [
    ("Llama", {}),
    ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("Llama", {"num_key_value_heads": 4, "rope_parameters": LLAMA3}),
    ("Llama", {"num_key_value_heads": 1, "rope_parameters": YARN}),
    ("Mistral", {"sliding_window": 8}),
    ("Mistral", {"sliding_window": None}),
    ("Qwen2", {}),
    ("Qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    ("Qwen3", {}),
    ("Qwen3", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
]


def make_model(name: str, changes: dict, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**COMMON, **changes})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    for parameter in model.parameters():  # biases and norms that do something
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=1.0, std=0.3)
    return model


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("name", "changes"), UNDERSTOOD)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_logits_are_the_models_own(name, changes, dtype) -> None:
    model = make_model(name, changes, dtype)
    assert is_known(model)
    own = own_answers(model)
    runner = fused_runner(model, 1)
    check_model(runner, own)
    n = len(own.first)
    runner.pool.n_pages, runner.pool.layers = n, {}
    flat = logits_of(runner, flatten([Row(own.first, 0, np.arange(n), np.arange(n))]))
    error = (flat - own.logits[:n]).norm(dim=-1) / own.logits[:n].norm(dim=-1)
    assert float(error.max()) < (1e-5 if dtype == torch.float32 else 0.1)


def test_only_the_wanted_tokens_leave_the_last_layer() -> None:
    runner = runner_of(make_model("Llama", {}), 30)
    tokens = np.arange(1, 21)
    everything = logits_of(runner, flatten([Row(tokens, 0, np.arange(20), np.arange(20))]))
    some = logits_of(runner, flatten([Row(tokens, 0, np.arange(20), np.array([3, 19]))]))
    torch.testing.assert_close(some, everything[[3, 19]])
    none = runner.run(flatten([Row(tokens, 0, np.arange(20), np.arange(0))]))
    assert none.shape == (0, VOCAB)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Llama", {"hidden_act": "gelu"}),
        ("Gemma", {}),
        ("GPT2", {"n_embd": 32, "n_layer": 1, "n_head": 4}),
        ("Qwen3Moe", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}),
    ],
)
def test_other_models_run_as_they_are(name, changes) -> None:
    model = make_model(name, changes)
    assert not is_known(model)
    own = own_answers(model)
    runner = runner_of(model, 1)
    assert runner.model is model
    check_model(runner, own)


def test_a_changed_model_is_not_understood() -> None:
    class Other(nn.Linear):
        pass

    model = make_model("Llama", {})
    model.model.layers[1].self_attn.o_proj = Other(64, 32)
    assert not is_known(model)
    model = make_model("Llama", {})
    model.model.layers[1].mlp.extra = nn.Linear(2, 2)
    assert not is_known(model)
    model = make_model("Llama", {})
    model.model.layers[0].mlp.register_forward_hook(lambda *_: None)
    assert not is_known(model)
    model = make_model("Llama", {})
    model.__class__ = type("LlamaForCausalLM", (type(model),), {})
    assert not is_known(model)


@pytest.mark.skipif(not can_pack(torch.bfloat16), reason="no packed order on this machine")
@pytest.mark.parametrize("way", [fused_runner, packed_runner])
def test_packed_weights_are_held_once(way) -> None:
    model = make_model("Llama", {}, torch.bfloat16)
    taken = [
        weakref.ref(module.weight)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    runner = way(model, 1)
    del model
    gc.collect()
    assert [ref() for ref in taken] == [None] * 15
    assert runner.vocab_size == VOCAB


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("can", [True, False])
def test_linear_layers(monkeypatch, dtype, has_bias, can) -> None:
    if not can:
        monkeypatch.setattr(packed, "can_pack", lambda dtype: False)
    torch.manual_seed(0)
    modules = [nn.Linear(32, n, bias=has_bias, dtype=dtype) for n in (48, 16)]
    one, both = (
        Linear.of(
            Product(
                tuple(m.weight.detach() for m in some),
                tuple(m.bias.detach() for m in some if m.bias is not None),
            )
        )
        for some in (modules[:1], modules)
    )
    assert one.n_out == 48
    near = {"atol": 2e-2, "rtol": 2e-2} if dtype == torch.bfloat16 else {"atol": 1e-6, "rtol": 1e-5}
    with torch.inference_mode():
        for n in (1, 5, 70):
            x, other = torch.randn(n, 32, dtype=dtype), torch.randn(n, 48, dtype=dtype)
            right = modules[0](x)
            torch.testing.assert_close(one(x), right, **near)
            torch.testing.assert_close(one.silu(x), F.silu(right), **near)
            torch.testing.assert_close(one.plus(x, other), other + right, **near)
            torch.testing.assert_close(one.times(x, other), other * right, **near)
            torch.testing.assert_close(both(x), torch.cat([m(x) for m in modules], 1), **near)
        assert PackedModule(modules[0])(x[:0]).shape == (0, 48)
        torch.testing.assert_close(PackedModule(modules[0])(x[None]), right[None], **near)


def test_a_forward_of_ours_that_errs_is_not_used(tmp_path, monkeypatch, caplog) -> None:
    make_model("Llama", {}).save_pretrained(tmp_path)
    assert load_model(str(tmp_path), pool_tokens=9).model is None
    monkeypatch.setattr(families, "Rope", lambda inverse, scale: Rope(inverse * 2, scale))
    runner = load_model(str(tmp_path), pool_tokens=9)
    assert type(runner.model).__name__ == "LlamaForCausalLM"
    assert "native_runner fails its check" in caplog.text
    assert "fused_runner fails its check" in caplog.text
