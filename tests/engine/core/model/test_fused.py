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

from sgc.kernels.cpu import library
from sgc.kernels.layers import Rope
from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.model.decoders import packed
from sgc.runtime.engine.model.decoders.decoder import Product
from sgc.runtime.engine.model.decoders.families import parts
from sgc.runtime.engine.model.decoders.families.known import is_known
from sgc.runtime.engine.model.decoders.packed import Linear, PackedModule, can_pack
from sgc.runtime.engine.model.device.places import Place
from sgc.runtime.engine.model.device.runners import fused_on
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.model.self_check import OwnAnswers, check_model, own_answers
from sgc.runtime.engine.model.ways import fused_runner, native_runner, packed_runner

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
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
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
SLIDING = {"sliding_window": 8}
ALTERNATING = {**SLIDING, "layer_types": ["sliding_attention", "full_attention"]}
PARTLY_ROTATED = {"rope_parameters": {**DEFAULT_ROPE, "partial_rotary_factor": 0.5}}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [2.0] * 4,
    "original_max_position_embeddings": 64,
}
GPT2_SIZES = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
OPT_SIZES = {"ffn_dim": 96, "word_embed_proj_dim": 32, "init_std": 0.3}
UNDERSTOOD = [
    ("Llama", {}),
    ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("Llama", {"num_key_value_heads": 4, "rope_parameters": LLAMA3}),
    ("Llama", {"num_key_value_heads": 1, "rope_parameters": YARN}),
    ("Mistral", SLIDING),
    ("Mistral", {"sliding_window": None}),
    ("Qwen2", {}),
    ("Qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    ("Qwen3", {"attention_bias": True}),
    ("Qwen3", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    ("Qwen3Moe", {**EXPERTS, "norm_topk_prob": True}),
    ("Qwen3Moe", {**EXPERTS, "mlp_only_layers": [0], "use_sliding_window": True, **SLIDING}),
    ("Mixtral", {"num_local_experts": 4}),
    ("Mixtral", {"num_local_experts": 6, "num_experts_per_tok": 3, **SLIDING}),
    ("SmolLM3", {"no_rope_layers": [1, 0], "pad_token_id": 0}),
    ("SmolLM3", {"use_sliding_window": True, **ALTERNATING, "pad_token_id": 0}),
    ("Granite", {"attention_multiplier": 0.2}),
    (
        "Granite",
        {"embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.3,
         "logits_scaling": 4.0, "attention_bias": True, "mlp_bias": True},
    ),
    ("Gemma", {}),
    ("Gemma", {"hidden_act": "silu", "attention_bias": True}),
    ("Gemma2", {**ALTERNATING, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    ("Gemma2", {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
    ("Gemma3Text", {**ALTERNATING, "query_pre_attn_scalar": 16}),
    ("Gemma3Text", {"final_logit_softcapping": 3.0, "attn_logit_softcapping": 2.0}),
    ("Olmo2", {}),
    ("Olmo2", {"attention_bias": True, "tie_word_embeddings": True}),
    ("Cohere", {"logit_scale": 0.5}),
    ("Cohere", {"attention_bias": True, "tie_word_embeddings": False}),
    ("StableLm", {"head_dim": 8}),
    (
        "StableLm",
        {"use_parallel_residual": True, "use_qkv_bias": True, "head_dim": 8, **PARTLY_ROTATED},
    ),
    ("Starcoder2", SLIDING),
    ("Starcoder2", {"use_bias": False, "hidden_act": "gelu", "sliding_window": None}),
    ("Phi", {}),
    ("Phi", {"num_key_value_heads": 4, "hidden_act": "relu"}),
    ("Phi3", {"pad_token_id": 0}),
    ("Phi3", {**SLIDING, **PARTLY_ROTATED, "pad_token_id": 0}),
    ("Phi3", {"rope_parameters": LONGROPE, "head_dim": 8, "pad_token_id": 0}),
    ("GPTNeoX", {}),
    ("GPTNeoX", {"use_parallel_residual": False, "attention_bias": False, **PARTLY_ROTATED}),
    ("GPT2", GPT2_SIZES),
    ("GPT2", {**GPT2_SIZES, "scale_attn_by_inverse_layer_idx": True, "n_inner": 96,
              "activation_function": "gelu", "tie_word_embeddings": False}),
    ("OPT", {**OPT_SIZES, "pad_token_id": 0}),
    ("OPT", {**OPT_SIZES, "enable_bias": False, "layer_norm_elementwise_affine": False,
             "activation_function": "gelu_new", "pad_token_id": 0}),
]  # fmt: skip
needs_library = pytest.mark.skipif(library.find() is None, reason=library.reason())
STAND_IN = fused_on(Place(torch.device("cpu"), "torch"))  # for a GPU: all of its way but kernels
OUR_WAYS = [fused_runner, STAND_IN, pytest.param(native_runner, marks=needs_library)]


def make_model(name: str, changes: dict, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**COMMON, **changes})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    for parameter in model.parameters():  # biases and norms that do something
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=0.0 if "Gemma" in name else 1.0, std=0.3)
    return model


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "changes"), UNDERSTOOD)
@pytest.mark.parametrize("way", OUR_WAYS)
def test_the_logits_are_the_models_own(name, changes, way) -> None:
    model = make_model(name, changes)
    assert is_known(model)
    own = own_answers(model)
    runner = way(model, 1)
    check_model(runner, own)
    assert runner_error(runner, own) < 1e-5


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "changes"), UNDERSTOOD)
def test_half_precision_is_as_near_to_exact_as_the_models_own(name, changes) -> None:
    """Exact: the same weights in float32. By the median position: rounding sends some tokens to
    other experts."""
    own = own_answers(make_model(name, changes, torch.bfloat16))
    exact = own_answers(make_model(name, changes, torch.bfloat16).float())
    for way in [fused_runner, STAND_IN, *([native_runner] if library.find() else [])]:
        runner = way(make_model(name, changes, torch.bfloat16), 1)
        assert runner_error(runner, exact, 0.5) < 1.5 * error_of(own.logits, exact, 0.5)


def runner_error(runner: ModelRunner, right: OwnAnswers, quantile: float = 1.0) -> float:
    n = len(right.first)
    runner.pool = KVPool(n)
    got = logits_of(runner, flatten([Row(right.first, 0, np.arange(n), np.arange(n))]))
    return error_of(got, right, quantile)


def error_of(got: torch.Tensor, right: OwnAnswers, quantile: float) -> float:
    """Relative, of the first sequence's position at this quantile."""
    n = len(right.first)
    errors = (got[:n] - right.logits[:n]).norm(dim=-1) / right.logits[:n].norm(dim=-1)
    return float(errors.quantile(quantile))


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
        ("GPT2", {**GPT2_SIZES, "activation_function": "quick_gelu"}),
        ("Cohere", {"use_qk_norm": True}),
        ("StableLm", {"qk_layernorm": True, "head_dim": 8}),
        ("Phi", {"qk_layernorm": True, "head_dim": 8}),
        ("OPT", {**OPT_SIZES, "do_layer_norm_before": False, "pad_token_id": 0}),
        ("OPT", {**OPT_SIZES, "word_embed_proj_dim": 16, "pad_token_id": 0}),
        ("Olmo", {"pad_token_id": 0}),
        ("GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2}),
        ("Qwen2Moe", {**EXPERTS, "shared_expert_intermediate_size": 16}),
    ],
)
def test_other_models_run_as_they_are(name, changes) -> None:
    model = make_model(name, changes)
    assert not is_known(model)
    own = own_answers(model)
    runner = runner_of(model, 1)
    assert runner.model is model
    check_model(runner, own)


class Other(nn.Linear):
    """What a linear layer becomes when it is quantized or adapted."""


def _change_class(model) -> None:
    model.__class__ = type("LlamaForCausalLM", (type(model),), {})


CHANGES = {
    "another layer": lambda m: setattr(m.model.layers[1].self_attn, "o_proj", Other(64, 32)),
    "one more layer": lambda m: setattr(m.model.layers[1].mlp, "extra", nn.Linear(2, 2)),
    "one layer less": lambda m: delattr(m.model, "rotary_emb"),
    "a parameter": lambda m: m.model.layers[0].self_attn.register_parameter(
        "sinks", nn.Parameter(torch.zeros(4))
    ),
    "another norm": lambda m: setattr(m.model, "norm", nn.LayerNorm(32)),
    "another activation": lambda m: setattr(m.model.layers[1].mlp, "act_fn", nn.Sigmoid()),
    "another dtype": lambda m: m.model.norm.double(),
    "a hook": lambda m: m.model.layers[0].mlp.register_forward_hook(lambda *_: None),
    "another forward": lambda m: setattr(m.model.layers[0], "forward", lambda *_: None),
    "a parametrization": lambda m: nn.utils.parametrizations.weight_norm(m.lm_head),
    "both directions": lambda m: setattr(m.model.layers[0].self_attn, "is_causal", False),
    "an unknown rotation": lambda m: m.config.rope_parameters.update(rope_type="other"),
    "a part that rotates": lambda m: setattr(m.model.rotary_emb, "inv_freq", torch.ones(4)),
    "quantization": lambda m: setattr(m.config, "quantization_config", {}),
    "another class": _change_class,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_is_not_known(change) -> None:
    model = make_model("Llama", {})
    assert is_known(model)
    CHANGES[change](model)
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
    monkeypatch.setattr(parts, "Rope", lambda inverse, *rest: Rope(inverse * 2, *rest))
    runner = load_model(str(tmp_path), pool_tokens=9)
    assert type(runner.model).__name__ == "LlamaForCausalLM"
    assert ("native_runner fails its check" in caplog.text) == (library.find() is not None)
    assert "fused_runner fails its check" in caplog.text
