"""A folder whose tensors are not exactly the model's is refused when it is loaded, by name: never
served with weights that were made up, left out, or read as what they are not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from engine.core.model.test_models import COMMON, make_model
from safetensors.torch import load_file, save_file

from sgc.errors import LoadError
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import UnsupportedModel

WEIGHTS = "model.safetensors"
Tensors = dict[str, torch.Tensor]


def mixtral() -> transformers.PreTrainedModel:
    """transformers puts its experts together while it loads."""
    torch.manual_seed(0)
    sizes = {**COMMON, "num_local_experts": 4, "num_experts_per_tok": 2}
    return transformers.AutoModelForCausalLM.from_config(transformers.MixtralConfig(**sizes))


MAKERS: dict[str, Callable[[], transformers.PreTrainedModel]] = {
    "Llama": lambda: make_model("Llama"),  # which is read without transformers
    "Qwen3": lambda: make_model("Qwen3"),
    "Gemma": lambda: make_model("Gemma"),  # whose head is its embedding
    "GPT2": lambda: make_model("GPT2"),  # likewise; its body's name may be left out
    "GptOss": lambda: make_model("GptOss"),
    "Mixtral": mixtral,
}


class Folder:
    """A saved model that is loaded with other tensors."""

    def __init__(self, path: Path, name: str, shard_size: str = "1GB") -> None:
        MAKERS[name]().save_pretrained(path, max_shard_size=shard_size)
        self.path = path
        self.right: Tensors = load_file(path / WEIGHTS) if (path / WEIGHTS).exists() else {}

    def load(self, tensors: Tensors | None = None) -> None:
        if tensors is not None:
            save_file(tensors, self.path / WEIGHTS, {"format": "pt"})
        load_model(str(self.path), pool_tokens=16, threads=1)

    def refused(self, tensors: Tensors | None = None) -> str:
        with pytest.raises((LoadError, UnsupportedModel)) as caught:
            self.load(tensors)
        assert str(self.path) in str(caught.value)
        return str(caught.value)

    def without(self, key: str) -> Tensors:
        return {name: tensor for name, tensor in self.right.items() if name != key}

    def kinds(self) -> list[str]:
        """A tensor of each kind, from the last layer, or expert, that has one."""
        return list({re.sub(r"\d+", "N", key): key for key in self.right}.values())


@pytest.fixture(params=MAKERS)
def folder(request, tmp_path) -> Folder:
    return Folder(tmp_path, request.param)


def test_what_is_whole_is_loaded(folder: Folder) -> None:
    folder.load()


@pytest.mark.sweep
@pytest.mark.parametrize("share", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_tensor_that_is_missing_is_named(folder: Folder, share: int) -> None:
    for key in folder.kinds()[::share]:
        said = folder.refused(folder.without(key))
        assert key.replace("block_sparse_moe", "mlp") in said or ".experts." in key


def test_a_tensor_of_another_shape_is_named(folder: Folder) -> None:
    key = next(key for key in folder.kinds() if "norm" in key or "ln_" in key)
    right = folder.right[key]
    said = folder.refused({**folder.right, key: torch.cat([right, right])})
    assert f"{key}, which is {2 * len(right)} and not {len(right)}" in said
    # As many numbers in another order are no less wrong.
    key = next(key for key in folder.kinds() if "embed" in key or "wte" in key)
    assert key in folder.refused({**folder.right, key: folder.right[key].T.contiguous()})


@pytest.mark.sweep
def test_a_tensor_that_the_model_does_not_have_is_named(folder: Folder) -> None:
    last = next(key for key in folder.kinds() if ".1." in key and ("norm" in key or "ln_" in key))
    for key in ("score.weight", f"{last}_scale", last.replace(".1.", ".2.")):
        assert key in folder.refused({**folder.right, key: torch.ones(3)})


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_quantized_numbers_are_not_taken_for_weights(folder: Folder, dtype: torch.dtype) -> None:
    key = next(key for key in folder.kinds() if ".mlp." in key or "experts" in key)
    said = folder.refused({**folder.right, key: folder.right[key].to(dtype)})
    assert f"1 not of 16 bit floating point or wider ({key})" in said


@pytest.mark.parametrize("gone", ["a tensor", "an expert"])
def test_one_of_what_is_put_together(tmp_path: Path, gone: str) -> None:
    folder = Folder(tmp_path, "Mixtral")
    mark = "layers.1.block_sparse_moe.experts.3." + ("w1" if gone == "a tensor" else "")
    kept = {key: tensor for key, tensor in folder.right.items() if mark not in key}
    assert 0 < len(folder.right) - len(kept) <= 3
    assert "layers.1.mlp.experts" in folder.refused(kept)


def test_long_lists_are_cut(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "Llama")
    kept = {key: tensor for key, tensor in folder.right.items() if "layers.1" not in key}
    said = folder.refused(kept)
    assert re.search(r"9 missing \((model\.layers\.1\.\S+, ){5}and 4 more\)", said)


BUFFERS: dict[str, tuple[str, ...]] = {
    "Llama": ("model.layers.0.self_attn.rotary_emb.inv_freq",),
    "Gemma": ("model.layers.1.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"),
    "GPT2": ("transformer.h.0.attn.bias", "transformer.h.1.attn.masked_bias"),
    "Mixtral": ("model.layers.0.self_attn.rotary_emb.inv_freq",),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_what_checkpoints_carry_and_the_model_makes_itself_is_no_fault(
    tmp_path: Path, name: str
) -> None:
    folder = Folder(tmp_path, name)
    more = {key: torch.ones(4) for key in BUFFERS[name]}
    if name == "GPT2":
        more["transformer.h.0.attn.bias"] = torch.ones(1, 1, 4, 4, dtype=torch.uint8)
    folder.load({**folder.right, **more})


def test_a_body_without_its_name_is_the_models(tmp_path: Path) -> None:
    """As GPT-2 lies on the hub."""
    folder = Folder(tmp_path, "GPT2")
    bare = {key.removeprefix("transformer."): t for key, t in folder.right.items()}
    folder.load({**bare, "h.0.attn.bias": torch.ones(1, 1, 4, 4)})
    assert "h.1.ln_1.weight" in folder.refused(
        {key: t for key, t in bare.items() if key != "h.1.ln_1.weight"}
    )


def test_a_head_that_is_the_embedding_may_be_there_or_not(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "Gemma")
    assert "lm_head.weight" not in folder.right
    embedding = folder.right["model.embed_tokens.weight"]
    folder.load({**folder.right, "lm_head.weight": embedding.clone()})


def test_several_files_make_one_model(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "Qwen3", shard_size="20KB")
    folder.load()
    shards = sorted(tmp_path.glob("*.safetensors"))
    assert len(shards) > 2
    tensors = load_file(shards[1])
    key = next(iter(tensors))
    tensors.pop(key)
    save_file(tensors, shards[1], {"format": "pt"})
    assert key in folder.refused()


def test_an_adapter_is_refused_whatever_is_installed(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "Llama")
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    assert "and no model by itself" in folder.refused()


@pytest.mark.parametrize("values", [
    {"hidden_size": "32"}, {"num_hidden_layers": -1}, {"model_type": "no-such-model"},
    {"rope_parameters": 3}, {"num_attention_heads": 0}, {"layer_types": [[1]]},
    {"rms_norm_eps": {}},
])  # fmt: skip
def test_settings_that_mean_nothing_are_a_typed_error(tmp_path: Path, values: dict) -> None:
    folder = Folder(tmp_path, "Qwen3")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    folder.refused()
