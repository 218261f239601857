"""A GGUF file's settings as a config.json: a row for each architecture of llama.cpp that is known.

transformers has such a table, too, but it leaves out what decides logits (rotary scaling, the head
size of Qwen3, sizes of experts); so this one is ours. A setting that no row reads is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgc.errors import LoadError, closest
from sgc.runtime.engine.model.checkpoints.gguf.files import Gguf
from sgc.runtime.engine.model.checkpoints.gguf.header import damaged
from sgc.runtime.engine.text.json_files import Json

EMBEDDING, HEAD = "token_embd.weight", "output.weight"
FREQUENCIES = "rope_freqs.weight"
LONG, SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
# No logit depends on these here; causal attention is checked separately.
_UNUSED = {"vocab_size", "tensor_data_layout", "pooling_type", "rope.scaling.finetuned"}
_DEFAULT_BASE = 10_000.0


@dataclass(slots=True)
class Keys:
    """An architecture's settings; remembers which ones were read."""

    path: Path
    architecture: str
    values: Mapping[str, Any]
    _read: set[str] = field(default_factory=set)

    def size(self, name: str, default: int | None = None) -> int:
        found = self._get(name, default)
        if isinstance(found, list) and found and found == found[:1] * len(found):
            found = found[0]  # one for each layer
        if type(found) is not int or not 0 < found < 2**31:
            damaged(self.path, f"{self.architecture}.{name} is {found!r:.50}, no size")
        return found

    def number(self, name: str, default: float | None = None) -> float:
        found = self._get(name, default)
        if type(found) not in (int, float) or not 0 < found < 1e12:
            damaged(self.path, f"{self.architecture}.{name} is {found!r:.50}, no number above 0")
        return float(found)

    def has(self, name: str) -> bool:
        return self._full(name) in self.values

    def says(self, name: str) -> bool:
        """Whether the setting is present and not 0."""
        return bool(self.values.get(self._full(name)))

    def word(self, name: str, default: str) -> str:
        return str(self._get(name, default))

    def must_be(self, name: str, *allowed: Any) -> None:
        """Refuses other values; a setting may be left out."""
        if self.has(name) and self._get(name) not in allowed:
            self.refuse(name)

    def refuse(self, name: str) -> None:
        raise LoadError(
            f"{self.path}: its setting {self._full(name)} ({self._get(name)!r:.50}) is not known "
            "here, and logits may depend on it",
            hint="serve the model's folder of safetensors",
        )

    def refuse_unread(self) -> None:
        beginning = f"{self.architecture}."
        for key, value in self.values.items():
            name = key.removeprefix(beginning)
            is_said = key.startswith(beginning) and value not in (0, "", [])
            if is_said and key not in self._read and name not in _UNUSED:
                self.refuse(name)

    def _full(self, name: str) -> str:
        return f"{self.architecture}.{name}"

    def _get(self, name: str, default: Any = None) -> Any:
        self._read.add(self._full(name))
        found = self.values.get(self._full(name), default)
        if found is None:
            damaged(self.path, f"it does not say {self._full(name)}")
        return found


@dataclass(frozen=True, slots=True)
class Architecture:
    """model_type, model: transformers' names. more: the settings that only this one has, from
    those read so far. rotates_pairs: whether rows of Q and K are in llama.cpp's order, in which
    pairs that are rotated together lie side by side. adds_one: whether norms are stored with one
    added. experts: whether it has them, stacked."""

    model_type: str
    model: str
    more: Callable[[Keys, Gguf, Json], Json]
    rotates_pairs: bool = False
    adds_one: bool = False
    has_experts: bool = False


def config_of(gguf: Gguf) -> Json:
    """A config.json; raises `LoadError` for what is not known or does not fit together."""
    row, keys = architecture_of(gguf)
    embedding = gguf.tensors.get(EMBEDDING)
    if embedding is None or len(embedding.shape) != 2:
        damaged(gguf.path, f"it has no {EMBEDDING}")
    keys.must_be("attention.causal", True)
    n_heads, hidden = keys.size("attention.head_count"), keys.size("embedding_length")
    if not keys.has("attention.key_length") and hidden % n_heads:
        damaged(gguf.path, f"{hidden} dimensions are no {n_heads} heads")
    head_dim = keys.size("attention.key_length", hidden // n_heads)
    keys.must_be("attention.value_length", head_dim)
    config: Json = {
        "architectures": [row.model],
        "model_type": row.model_type,
        "dtype": gguf.dtype,
        "vocab_size": embedding.shape[0],
        "hidden_size": hidden,
        "intermediate_size": keys.size("feed_forward_length"),
        "num_hidden_layers": keys.size("block_count"),
        "num_attention_heads": n_heads,
        "num_key_value_heads": keys.size("attention.head_count_kv", n_heads),
        "head_dim": head_dim,
        "max_position_embeddings": keys.size("context_length"),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": HEAD not in gguf.tensors,
    }
    config |= row.more(keys, gguf, config)
    keys.refuse_unread()
    return config


def architecture_of(gguf: Gguf) -> tuple[Architecture, Keys]:
    name = gguf.values.get("general.architecture")
    if not isinstance(name, str):
        damaged(gguf.path, "it does not say general.architecture")
    row = ARCHITECTURES.get(name)
    if row is None:
        raise LoadError(
            f"{gguf.path} is of llama.cpp's architecture {name!r:.80}, which is not read as GGUF "
            f"here; {', '.join(ARCHITECTURES)} are{closest(name[:80], ARCHITECTURES)}",
            hint="serve the model's folder of safetensors",
        )
    return row, Keys(gguf.path, name, gguf.values)


def _has_biases(gguf: Gguf, name: str) -> bool:
    return f"blk.0.{name}.bias" in gguf.tensors


def _llama(keys: Keys, gguf: Gguf, config: Json) -> Json:
    return {
        "hidden_act": "silu",
        "attention_bias": _has_biases(gguf, "attn_q"),
        "mlp_bias": _has_biases(gguf, "ffn_gate"),
        "rope_parameters": _rope(keys, gguf, config),
    }


def _qwen2(keys: Keys, gguf: Gguf, config: Json) -> Json:
    if config["head_dim"] * config["num_attention_heads"] != config["hidden_size"]:
        keys.refuse("attention.key_length")
    return {"hidden_act": "silu", "rope_parameters": _rope(keys, gguf, config)}


def _qwen3(keys: Keys, gguf: Gguf, config: Json) -> Json:
    biases = {"attention_bias": _has_biases(gguf, "attn_q")}
    return {"hidden_act": "silu", "rope_parameters": _rope(keys, gguf, config), **biases}


def _experts(keys: Keys) -> Json:
    """Of Qwen's; whether their weights sum to one follows from the architecture."""
    keys.must_be("expert_gating_func", 1)  # softmax
    keys.must_be("expert_weights_scale", 1.0)
    return {
        "num_experts": keys.size("expert_count"),
        "num_experts_per_tok": keys.size("expert_used_count"),
        "moe_intermediate_size": keys.size("expert_feed_forward_length"),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _qwen2moe(keys: Keys, gguf: Gguf, config: Json) -> Json:
    keys.must_be("expert_weights_norm", False)
    shared = keys.size("expert_shared_feed_forward_length")
    more = {"shared_expert_intermediate_size": shared, "norm_topk_prob": False}
    return {**_qwen2(keys, gguf, config), **_experts(keys), **more}


def _qwen3moe(keys: Keys, gguf: Gguf, config: Json) -> Json:
    keys.must_be("expert_weights_norm", True)
    return {**_qwen3(keys, gguf, config), **_experts(keys), "norm_topk_prob": True}


def _gemma2(keys: Keys, gguf: Gguf, config: Json) -> Json:
    return {
        **_windows(keys, config, 2),
        "query_pre_attn_scalar": _queries_scale(config, 46),
        "attn_logit_softcapping": keys.number("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": keys.number("final_logit_softcapping", 30.0),
        "rope_parameters": _rope(keys, gguf, config),
    }


def _gemma3(keys: Keys, gguf: Gguf, config: Json) -> Json:
    local = keys.number("rope.freq_base_swa", _DEFAULT_BASE)
    caps = {
        name: keys.number(name) if keys.says(name) else None
        for name in ("attn_logit_softcapping", "final_logit_softcapping")
    }
    return {
        **_windows(keys, config, 6),
        **caps,
        "query_pre_attn_scalar": _queries_scale(config, 62),
        "rope_parameters": {
            "full_attention": _rope(keys, gguf, config),
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        },
    }


def _windows(keys: Keys, config: Json, every: int) -> Json:
    """Sliding windows in all layers but each `every`-th."""
    keys.must_be("attention.sliding_window_pattern", every)
    kinds = ["full_attention" if (i + 1) % every == 0 else "sliding_attention"
             for i in range(min(config["num_hidden_layers"], 2**16))]  # fmt: skip
    window = keys.size("attention.sliding_window")
    act = {"hidden_activation": "gelu_pytorch_tanh"}
    return {"sliding_window": window, "layer_types": kinds, **act}


def _queries_scale(config: Json, n_layers_of_27b: int) -> int:
    """As in llama.cpp: in the model of 27B, the scale is not from the head's size."""
    if config["num_hidden_layers"] == n_layers_of_27b:
        return int(config["hidden_size"] // config["num_attention_heads"])
    return int(config["head_dim"])


def _phi3(keys: Keys, gguf: Gguf, config: Json) -> Json:
    n_rotated = keys.size("rope.dimension_count", config["head_dim"])
    original = keys.size("rope.scaling.original_context_length", config["max_position_embeddings"])
    name = "attention.sliding_window"
    window = keys.size(name) if keys.says(name) else None  # Phi-4 says 0
    keys.must_be("rope.scaling.type", "none", "longrope")
    rope: Json = {"rope_type": "default", "rope_theta": keys.number("rope.freq_base", 1e4)}
    if n_rotated != config["head_dim"]:
        rope["partial_rotary_factor"] = n_rotated / config["head_dim"]
    long, short = gguf.factors(LONG), gguf.factors(SHORT)
    if long is not None or short is not None:
        if {len(long or ()), len(short or ())} != {n_rotated // 2}:
            damaged(gguf.path, f"its {LONG} and {SHORT} are not of {n_rotated} dimensions")
        rope |= {"rope_type": "longrope", "long_factor": long, "short_factor": short}
        rope["original_max_position_embeddings"] = original
        if keys.has("rope.scaling.attn_factor"):
            rope["attention_factor"] = keys.number("rope.scaling.attn_factor")
    elif original != config["max_position_embeddings"]:
        keys.refuse("rope.scaling.original_context_length")
    return {
        "hidden_act": "silu",
        "sliding_window": window,
        "rope_parameters": rope,
        "original_max_position_embeddings": original,
    }


def _rope(keys: Keys, gguf: Gguf, config: Json) -> Json:
    """Rotary positions of all of a head's dimensions."""
    keys.must_be("rope.dimension_count", config["head_dim"])
    keys.must_be("rope.scaling.type", "none", "linear", "yarn")
    kind = keys.word("rope.scaling.type", "none")
    rope: Json = {"rope_type": "default", "rope_theta": keys.number("rope.freq_base", 1e4)}
    if kind == "linear":
        keys.size("rope.scaling.original_context_length", 1)  # which changes nothing
        rope |= {"rope_type": kind, "factor": keys.number("rope.scaling.factor")}
    if kind == "yarn":
        rope |= {"rope_type": kind, **_yarn(keys)}
    return _with_frequencies(rope, keys, gguf.factors(FREQUENCIES), config)


def _yarn(keys: Keys) -> Json:
    keys.must_be("rope.scaling.yarn_ext_factor", 1.0)
    for name in ("attn_factor", "yarn_attn_factor"):
        keys.must_be(f"rope.scaling.{name}", 1.0)
    return {
        "factor": keys.number("rope.scaling.factor"),
        "original_max_position_embeddings": keys.size("rope.scaling.original_context_length"),
        "beta_fast": keys.number("rope.scaling.yarn_beta_fast", 32.0),
        "beta_slow": keys.number("rope.scaling.yarn_beta_slow", 1.0),
    }


def _with_frequencies(rope: Json, keys: Keys, factors: list[float] | None, config: Json) -> Json:
    """factors: by which frequencies are divided. Of Llama 3.1's scaling, only these are stored.
    longrope divides by lists, here by the same one at any length."""
    if factors is None:
        return rope
    if rope["rope_type"] != "default" or len(factors) != config["head_dim"] // 2:
        damaged(keys.path, f"its {FREQUENCIES} has {len(factors)} factors, of {rope['rope_type']} "
                f"rotary positions for {config['head_dim']} dimensions")  # fmt: skip
    return {
        **rope,
        "rope_type": "longrope",
        "long_factor": factors,
        "short_factor": factors,
        "attention_factor": 1.0,
        "original_max_position_embeddings": config["max_position_embeddings"],
    }


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("llama", "LlamaForCausalLM", _llama, rotates_pairs=True),
    "qwen2": Architecture("qwen2", "Qwen2ForCausalLM", _qwen2),
    "qwen3": Architecture("qwen3", "Qwen3ForCausalLM", _qwen3),
    "qwen2moe": Architecture("qwen2_moe", "Qwen2MoeForCausalLM", _qwen2moe, has_experts=True),
    "qwen3moe": Architecture("qwen3_moe", "Qwen3MoeForCausalLM", _qwen3moe, has_experts=True),
    "gemma2": Architecture("gemma2", "Gemma2ForCausalLM", _gemma2, adds_one=True),
    "gemma3": Architecture("gemma3_text", "Gemma3ForCausalLM", _gemma3, adds_one=True),
    "phi3": Architecture("phi3", "Phi3ForCausalLM", _phi3),
}
