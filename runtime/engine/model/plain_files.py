"""Loads a model of `plain_llama.py` from a folder, if every setting and every tensor is known.

It returns None for everything else, which transformers then handles: other families, settings not
listed here, missing or additional tensors or other shapes, adapters, quantized or sharded weights.
Only safetensors are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from sgc.runtime.engine.model import plain_llama as plain
from sgc.runtime.engine.text.json_files import Json, read_json

WEIGHTS = "model.safetensors"
# Files that transformers would load instead of it or beside it.
OTHERS = ("model.safetensors.index.json", "adapter_config.json")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
         "num_attention_heads", "num_key_value_heads", "max_position_embeddings")  # fmt: skip
OPTIONAL = {"rope_theta", "rope_parameters", "rope_scaling", "dtype", "torch_dtype"}
# Settings of training, of calling the model and of the tokenizer's ids: no logit depends on them.
UNUSED = {"_name_or_path", "attention_dropout", "initializer_range", "pretraining_tp",
          "transformers_version", "use_cache", "bos_token_id", "eos_token_id",
          "pad_token_id"}  # fmt: skip
KNOWN = {*SIZES, *OPTIONAL, *UNUSED, "hidden_act", "architectures", "model_type", "rms_norm_eps",
         "tie_word_embeddings"}  # fmt: skip
FULL = "full_attention"


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of models. optional: settings that others have not; biases: which products have one,
    None if the settings ask for what the family's plain model has not."""

    make: type[plain.LlamaForCausalLM]
    optional: frozenset[str]
    biases: Callable[[Json], Json | None]


def _llama_biases(values: Json) -> Json | None:
    has_bias = values.get("attention_bias", False)
    return {
        "attention_bias": has_bias,
        "output_bias": has_bias,
        "mlp_bias": values.get("mlp_bias", False),
    }


def _qwen2_biases(values: Json) -> Json | None:
    kinds = values.get("layer_types")
    is_full = kinds is None or kinds == [FULL] * values["num_hidden_layers"]
    if not is_full or values.get("use_sliding_window", False) is not False:
        return None
    return {"attention_bias": True, "output_bias": False, "mlp_bias": False}


KINDS = {
    "llama": Kind(
        plain.LlamaForCausalLM,
        frozenset({"head_dim", "attention_bias", "mlp_bias"}),
        _llama_biases,
    ),
    "qwen2": Kind(
        plain.Qwen2ForCausalLM,
        frozenset({"use_sliding_window", "sliding_window", "max_window_layers", "layer_types"}),
        _qwen2_biases,
    ),
}

_Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """A folder whose settings are all known. dtype: the type to convert its weights to."""

    path: Path
    kind: Kind
    config: plain.LlamaConfig
    dtype: torch.dtype

    def num_parameters(self) -> int:
        return sum(math.prod(shape) for shape in shapes_of(self.config).values())

    def load(self, device: torch.device | str = "cpu") -> plain.LlamaForCausalLM | None:
        """The model; None if the tensors are not exactly those that it needs."""
        tensors = _read_tensors(self.path, shapes_of(self.config), device)
        if tensors is None:
            return None
        of_dtype = {key: t.to(self.dtype) for key, t in tensors.items()}
        return self.kind.make(self.config, *build(self.config, of_dtype))


def find_plain(folder: Path, dtype: str) -> PlainFiles | None:
    """dtype: "auto" is what the config.json says. Reads no weights."""
    values = read_json(folder / "config.json")
    kind, config = kind_of(values), read_config(values)
    name = values.get("dtype", values.get("torch_dtype")) if dtype == "auto" else dtype
    path = folder / WEIGHTS
    is_alone = path.is_file() and not any((folder / other).exists() for other in OTHERS)
    if kind is None or config is None or not isinstance(name, str) or name not in DTYPES:
        return None
    return PlainFiles(path, kind, config, DTYPES[name]) if is_alone else None


def _read_tensors(
    path: Path, shapes: Mapping[str, tuple[int, ...]], device: torch.device | str
) -> _Tensors | None:
    """The tensors of a file, if they are exactly those of `shapes` and floating point."""
    with safe_open(path, framework="pt", device=str(device)) as file:
        found = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        if found != shapes or (file.metadata() or {}).get("format") != "pt":
            return None
        tensors = {key: file.get_tensor(key) for key in found}
    is_plain = all(tensor.dtype in DTYPES.values() for tensor in tensors.values())
    return tensors if is_plain else None


def kind_of(values: Json) -> Kind | None:
    """The family that a config.json names, if it is known and says the same everywhere."""
    name = values.get("model_type")
    kind = KINDS.get(name) if isinstance(name, str) else None
    is_one = kind is not None and values.get("architectures") == [kind.make.__name__]
    return kind if is_one and values.get("hidden_act") == "silu" else None


def read_config(values: Json) -> plain.LlamaConfig | None:
    """The settings of a config.json, or None if one is missing, unknown or of another type."""
    kind, rope_theta = kind_of(values), _rope_theta(values)
    sizes = {key: values.get(key) for key in SIZES}
    eps, pad = values.get("rms_norm_eps"), values.get("pad_token_id")
    if (
        kind is None
        or not values.keys() <= KNOWN | kind.optional
        or {"dtype", "torch_dtype"} <= values.keys()
        or rope_theta is None
        or not all(type(size) is int and size > 0 for size in sizes.values())
        or type(eps) is not float
        or not (pad is None or (type(pad) is int and 0 <= pad < values["vocab_size"]))
        or values["hidden_size"] % values["num_attention_heads"]
        or values["num_attention_heads"] % values["num_key_value_heads"]
    ):
        return None
    biases = kind.biases(values)
    switches = {**(biases or {}), "tie_word_embeddings": values.get("tie_word_embeddings")}
    if biases is None or not all(type(switch) is bool for switch in switches.values()):
        return None
    head_dim = values.get("head_dim")
    if head_dim is None:
        head_dim = values["hidden_size"] // values["num_attention_heads"]
    if type(head_dim) is not int or head_dim <= 0 or head_dim % 2:
        return None
    options: dict[str, Any] = {**sizes, **switches}
    return plain.LlamaConfig(**options, head_dim=head_dim, rms_norm_eps=eps, rope_theta=rope_theta)


def _rope_theta(values: Json) -> float | None:
    """The base of default rotary positions; None if they are of another kind, or given twice."""
    if values.get("rope_scaling") is not None:
        return None
    base = values.get("rope_theta")
    if (rope := values.get("rope_parameters")) is not None:
        if base is not None or not isinstance(rope, dict):
            return None
        if rope.keys() != {"rope_type", "rope_theta"} or rope["rope_type"] != "default":
            return None
        base = rope["rope_theta"]
    return float(base) if isinstance(base, int | float) and base > 1 else None


def shapes_of(config: plain.LlamaConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of exactly the tensors that the file must hold."""
    hidden, inner = config.hidden_size, config.intermediate_size
    q = config.num_attention_heads * config.head_dim
    kv = config.num_key_value_heads * config.head_dim
    projections = {
        "self_attn.q_proj": (q, hidden, config.attention_bias),
        "self_attn.k_proj": (kv, hidden, config.attention_bias),
        "self_attn.v_proj": (kv, hidden, config.attention_bias),
        "self_attn.o_proj": (hidden, q, config.output_bias),
        "mlp.gate_proj": (inner, hidden, config.mlp_bias),
        "mlp.up_proj": (inner, hidden, config.mlp_bias),
        "mlp.down_proj": (hidden, inner, config.mlp_bias),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    for i in range(config.num_hidden_layers):
        layer = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}{norm}.weight"] = (hidden,)
        for name, (n_out, n_in, has_bias) in projections.items():
            shapes[f"{layer}{name}.weight"] = (n_out, n_in)
            if has_bias:
                shapes[f"{layer}{name}.bias"] = (n_out,)
    return shapes


def build(config: plain.LlamaConfig, tensors: _Tensors) -> tuple[plain.Body, plain.Projection]:
    """The model's body and head. tensors: those of `shapes_of`, of one dtype."""

    def projection(name: str) -> plain.Projection:
        return plain.Projection(tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))

    def norm(name: str) -> plain.Norm:
        return plain.Norm(tensors[f"{name}.weight"], config.rms_norm_eps)

    def layer(name: str) -> plain.Layer:
        q, k, v, o = (projection(f"{name}.self_attn.{x}_proj") for x in "qkvo")
        gate, up, down = (projection(f"{name}.mlp.{x}_proj") for x in ("gate", "up", "down"))
        return plain.Layer(
            plain.Attention(q, k, v, o, config.head_dim),
            plain.Mlp(gate, up, down),
            norm(f"{name}.input_layernorm"),
            norm(f"{name}.post_attention_layernorm"),
        )

    embedding = projection("model.embed_tokens")
    layers = [layer(f"model.layers.{i}") for i in range(config.num_hidden_layers)]
    rotary = plain.Rotary(config, embedding.weight.device)
    body = plain.Body(embedding, layers, norm("model.norm"), rotary)
    head = embedding if config.tie_word_embeddings else projection("lm_head")
    return body, head
