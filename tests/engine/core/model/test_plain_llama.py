"""A Llama or a Qwen2 without transformers is transformers' own, bit for bit, or is left to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.model.plain_files import find_plain, read_config
from sgc.runtime.engine.model.runner import max_context_of
from sgc.runtime.engine.model.transformers_files import load_transformers_model

SIZES = {
    "vocab_size": 199,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
MADE: dict[str, dict[str, Any]] = {
    "plain": {},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "tied": {"tie_word_embeddings": True},
    "heads": {"head_dim": 16, "num_key_value_heads": 4},
    "one kv head": {"num_key_value_heads": 1, "rms_norm_eps": 1e-5},
    "rope": {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
}
QWEN2: dict[str, dict[str, Any]] = {
    "plain": {},
    "tied": {"tie_word_embeddings": True, "rms_norm_eps": 1e-5},
    "a window that no layer uses": {"sliding_window": 24, "max_window_layers": 1},
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def save(folder: Path, dtype: str = "float32", family: str = "Llama", **changes: Any) -> Path:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **changes})
    model = getattr(transformers, f"{family}ForCausalLM")(config).to(DTYPES[dtype])
    for parameter in model.parameters():  # biases and norms that do something
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.3)
    model.save_pretrained(folder)
    return folder


def edit(folder: Path, **changes: Any) -> None:
    """Changes settings of a saved model; None takes one away."""
    values = {**json.loads((folder / "config.json").read_text()), **changes}
    kept = {key: value for key, value in values.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))


@torch.inference_mode()
def assert_is_transformers_own(folder: Path, dtype: str) -> None:
    files = find_plain(folder, dtype)
    assert files is not None
    plain = files.load()
    own = load_transformers_model(str(folder), dtype)
    own.set_attn_implementation("eager")
    own.eval()
    tokens = torch.randint(0, own.config.vocab_size, (2, 40))
    assert plain is not None
    assert torch.equal(plain(tokens), own(input_ids=tokens, use_cache=False).logits)
    assert plain.dtype == own.dtype
    assert files.num_parameters() == own.num_parameters()
    assert max_context_of(plain.config) == max_context_of(own.config)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_made_models_give_the_same_logits(tmp_path: Path, name: str, dtype: str) -> None:
    assert_is_transformers_own(save(tmp_path, **MADE[name]), dtype)


@pytest.mark.parametrize("name", QWEN2)
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_a_qwen2_gives_the_same_logits(tmp_path: Path, name: str, dtype: str) -> None:
    assert_is_transformers_own(save(tmp_path, family="Qwen2", **QWEN2[name]), dtype)


@pytest.mark.parametrize("saved", ["bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_weights_of_other_types_give_the_same_logits(
    tmp_path: Path, saved: str, dtype: str
) -> None:
    assert_is_transformers_own(save(tmp_path, dtype=saved), dtype)


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_the_shipped_model_gives_the_same_logits(dtype: str) -> None:
    assert_is_transformers_own(DEFAULT_FOLDER, dtype)


def test_settings_of_older_files_are_read(tmp_path: Path) -> None:
    """`rope_theta` and `torch_dtype` stood by themselves, and what was null was written."""
    save(tmp_path)
    edit(tmp_path, rope_parameters=None, rope_theta=20000.0, dtype=None, torch_dtype="bfloat16")
    values = json.loads((tmp_path / "config.json").read_text())
    values |= {"rope_scaling": None, "head_dim": None}
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert_is_transformers_own(tmp_path, "auto")


LEFT_TO_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "an unknown setting": {"logit_scale": 2.0},
    "another family": {"model_type": "mistral", "architectures": ["MistralForCausalLM"]},
    "another class": {"architectures": ["LlamaForSequenceClassification"]},
    "another activation": {"hidden_act": "gelu"},
    "quantized": {"quantization_config": {"quant_method": "gptq", "bits": 4}},
    "scaled positions": {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}},
    "more said of positions": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "factor": 2.0}
    },
    "partly rotated": {"partial_rotary_factor": 0.5},
    "positions said twice": {"rope_theta": 10000.0},
    "an old way to scale": {"rope_scaling": {"type": "linear", "factor": 2.0}},
    "no base": {"rope_parameters": None},
    "no type": {"dtype": None},
    "another type": {"dtype": "float64"},
    "two types": {"torch_dtype": "bfloat16"},
    "no size": {"num_key_value_heads": None},
    "a size that is none": {"num_hidden_layers": "2"},
    "a size below one": {"num_hidden_layers": 0},
    "heads that do not divide": {"num_key_value_heads": 3},
    "no word on tying": {"tie_word_embeddings": None},
    "a switch that is none": {"attention_bias": "yes"},
    "an odd head": {"head_dim": 7},
    "padding outside": {"pad_token_id": 199},
}


@pytest.mark.parametrize("name", LEFT_TO_TRANSFORMERS)
def test_settings_that_are_not_known_are_left_to_transformers(tmp_path: Path, name: str) -> None:
    save(tmp_path)
    assert find_plain(tmp_path, "auto") is not None
    edit(tmp_path, **LEFT_TO_TRANSFORMERS[name])
    assert find_plain(tmp_path, "auto") is None


QWEN2_LEFT_TO_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "windows": {"use_sliding_window": True},
    "a layer with a window": {"layer_types": ["full_attention", "sliding_attention"]},
    "kinds of more layers": {"layer_types": ["full_attention"] * 3},
    "a setting of Llama": {"attention_bias": True},
    "the class of Llama": {"architectures": ["LlamaForCausalLM"]},
    "the type of Llama": {"model_type": "llama"},
    "layers that are no number": {"num_hidden_layers": "2"},
}


@pytest.mark.parametrize("name", QWEN2_LEFT_TO_TRANSFORMERS)
def test_what_a_qwen2_has_beyond_a_llama_is_left_to_transformers(tmp_path: Path, name: str) -> None:
    save(tmp_path, family="Qwen2")
    assert find_plain(tmp_path, "auto") is not None
    edit(tmp_path, **QWEN2_LEFT_TO_TRANSFORMERS[name])
    assert find_plain(tmp_path, "auto") is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_plain_qwen2_is_served_by_its_name(tmp_path: Path, dtype: str) -> None:
    runner = load_model(str(save(tmp_path, dtype, "Qwen2")), pool_tokens=9)
    assert (runner.name, runner.vocab_size) == ("Qwen2ForCausalLM", 199)


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "adapter_config.json"])
def test_other_weights_are_left_to_transformers(tmp_path: Path, name: str) -> None:
    save(tmp_path)
    (tmp_path / name).write_text("{}")
    assert find_plain(tmp_path, "auto") is None
    (tmp_path / name).unlink()
    (tmp_path / "model.safetensors").unlink()
    assert find_plain(tmp_path, "auto") is None


def test_tensors_that_are_not_expected_are_left_to_transformers(tmp_path: Path) -> None:
    files = find_plain(save(tmp_path), "auto")
    assert files is not None
    right = load_file(files.path)

    def loads(tensors: dict[str, torch.Tensor], **metadata: str) -> bool:
        save_file(tensors, files.path, {"format": "pt", **metadata})
        return files.load() is not None

    assert loads(right)
    assert not loads({**right, "model.extra": torch.zeros(1)})
    assert not loads({key: value for key, value in right.items() if key != "lm_head.weight"})
    assert not loads({**right, "lm_head.weight": torch.zeros(198, 32)})
    assert not loads({**right, "model.norm.weight": torch.ones(32, dtype=torch.int8)})
    assert not loads(right, format="tf")


def test_a_head_of_its_own_is_kept_where_the_settings_say_tied(tmp_path: Path) -> None:
    """What then counts is transformers' to say, and it is what the engine serves."""
    save(tmp_path)
    edit(tmp_path, tie_word_embeddings=True)
    files = find_plain(tmp_path, "auto")
    assert files is not None
    assert files.load() is None
    runner = load_model(str(tmp_path), pool_tokens=9)
    assert runner.vocab_size == 199


def test_every_setting_of_the_shipped_model_counts_or_is_listed_as_unused() -> None:
    values = json.loads((DEFAULT_FOLDER / "config.json").read_text())
    config = read_config(values)
    assert config is not None
    assert config == read_config({**values, "use_cache": False, "eos_token_id": None})
    assert config != read_config({**values, "rms_norm_eps": 1e-6})


@pytest.mark.slow
def test_a_plain_model_takes_no_transformers_and_one_thread(tmp_path: Path) -> None:
    """In a process of its own: this one has both."""
    save(tmp_path)
    code = (
        "import sys, torch; from sgc.runtime.engine.model.loading import load_model;"
        f"load_model({str(tmp_path)!r}, pool_tokens=9);"
        "print('transformers' in sys.modules, torch.get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "1"], done.stderr
