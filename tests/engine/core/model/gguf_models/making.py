"""Writes a small model of transformers as a GGUF file, by the `gguf` package and as llama.cpp's own
converter does: rows of Q and K in its order, Gemma's norms with one added, experts stacked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

ARCHITECTURES = {"qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "gemma3_text": "gemma3"}
SPECIALS = ["<|end|>", "<|turn|>"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz.,?!ĠĊ"]
MERGES = ["Ġ t", "h e", "Ġt he", "Ġ a", "Ġa n"]
TOKENS = [*SPECIALS, *LETTERS, *(merge.replace(" ", "") for merge in MERGES)]
BYTE_LEVEL: dict[str, Any] = {
    "ggml.model": "gpt2", "ggml.pre": "gpt-2", "ggml.tokens": TOKENS, "ggml.merges": MERGES,
    "ggml.token_type": [3] * len(SPECIALS) + [1] * (len(TOKENS) - len(SPECIALS)),
    "ggml.eos_token_id": 0, "ggml.eot_token_id": 1,
}  # fmt: skip
# A whole number of blocks in each row, whatever the kind.
WIDE = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "vocab_size": 64,
        "head_dim": 64}  # fmt: skip
HALVES = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q2_K": (80, 82), "Q3_K": (108,),
          "IQ1_S": (0,), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,), "IQ3_XXS": (0,),
          "IQ3_S": (0,), "IQ4_NL": (0,), "IQ4_XS": (0,), "IQ1_M": ()}  # fmt: skip
"""Where a block of a kind has its scales; the `gguf` package packs none of these."""


def save_gguf(
    path: Path,
    model: Any,
    *,
    kind: str = "F32",
    values: Mapping[str, Any] | None = None,
    vocabulary: Mapping[str, Any] = BYTE_LEVEL,
    tensors: Mapping[str, Tensor | None] | None = None,
) -> dict[str, tuple[bytes, str]]:
    """kind: of all products. values: more settings; None for one that is left out. tensors: others
    in place of the model's, or none. Returns each quantized tensor's bytes and kind."""
    import gguf

    config, architecture = model.config, architecture_of(model)
    writer = gguf.GGUFWriter(path, architecture)
    named = {f"{architecture}.{key}": value for key, value in settings_of(config).items()}
    named |= {f"tokenizer.{key}": value for key, value in vocabulary.items()}
    for key, value in (named | dict(values or {})).items():
        add(writer, key, value)
    wanted = {**tensors_of(model), **dict(tensors or {})}
    packed: dict[str, tuple[bytes, str]] = {}
    for name, tensor in wanted.items():
        if tensor is None:
            continue
        numbers = tensor.detach().float().numpy()
        if tensor.ndim == 1 or kind == "F32":
            writer.add_tensor(name, np.ascontiguousarray(numbers))
            continue
        data = pack(numbers, kind, len(packed))
        packed[name] = (data.tobytes(), kind)
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return packed


def architecture_of(model: Any) -> str:
    return ARCHITECTURES.get(model.config.model_type, model.config.model_type)


def add(writer: Any, key: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        (writer.add_uint32 if value >= 0 else writer.add_int32)(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def settings_of(config: Any) -> dict[str, Any]:
    rope = config.rope_parameters
    full = rope.get("full_attention", rope)
    found: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": getattr(config, "head_dim", None),
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": full["rope_theta"],
        "expert_count": getattr(config, "num_experts", None),
        "expert_used_count": getattr(config, "num_experts_per_tok", None),
        "expert_feed_forward_length": getattr(config, "moe_intermediate_size", None),
        "expert_shared_feed_forward_length": getattr(
            config, "shared_expert_intermediate_size", None
        ),
    }
    if "gemma" in config.model_type:
        found |= {"attention.sliding_window": config.sliding_window}
        for name in ("attn_logit_softcapping", "final_logit_softcapping"):
            found[name] = getattr(config, name)
    if config.model_type == "phi3":
        n = config.hidden_size // config.num_attention_heads
        found["rope.dimension_count"] = int(n * full.get("partial_rotary_factor", 1.0))
        found["attention.sliding_window"] = config.sliding_window
    return found


def tensors_of(model: Any) -> dict[str, Tensor]:
    """By llama.cpp's names."""
    import gguf

    config, architecture = model.config, architecture_of(model)
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    found: dict[str, Tensor] = {}
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if ".mlp.experts." in key:
            found |= experts_of(key, tensor)
            continue
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name is not None, key
        found[name] = changed(key, tensor, config)
    return found


def experts_of(key: str, tensor: Tensor) -> dict[str, Tensor]:
    beginning = f"blk.{key.split('.')[2]}"
    if key.endswith("down_proj"):
        return {f"{beginning}.ffn_down_exps.weight": tensor}
    gate, up = tensor.chunk(2, dim=1)
    return {f"{beginning}.ffn_gate_exps.weight": gate, f"{beginning}.ffn_up_exps.weight": up}


def changed(key: str, tensor: Tensor, config: Any) -> Tensor:
    if "gemma" in config.model_type and key.endswith("norm.weight"):
        return tensor + 1
    if key.endswith("shared_expert_gate.weight"):
        return tensor.flatten()
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    n_heads = heads.get(key.split(".")[-2])
    if config.model_type != "llama" or n_heads is None:
        return tensor
    return tensor.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).reshape(tensor.shape)


def pack(numbers: Any, kind: str, seed: int) -> Any:
    """The bytes of a kind: of these numbers, or of others where the package cannot pack."""
    import gguf

    wanted = gguf.GGMLQuantizationType[kind]
    if kind not in HALVES:
        return gguf.quantize(numbers, wanted)
    n, size = gguf.GGML_QUANT_SIZES[wanted]
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (numbers.size // n, size), np.uint8)
    for at in HALVES[kind]:
        scales = (rng.random((len(blocks), 1)) * 2e-4 + 1e-4).astype(np.float16)
        blocks[:, at : at + 2] = scales.view(np.uint8)
    if kind == "IQ1_M":  # its scale is in the upper halves of four bytes
        nibbles = np.array([0x1, 0x7, 0x9, 0x0], np.uint8)  # 0x0971, about 1.6e-4
        blocks[:, 49:56:2] = blocks[:, 49:56:2] % 16 + nibbles * 16
    return blocks.reshape(*numbers.shape[:-1], -1)


def wide(shape: tuple[int, ...], data: bytes, kind: str) -> Tensor:
    """What transformers makes of a tensor's bytes, by another way than the `gguf` package."""
    from transformers.integrations.gguf import dequant

    raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    if kind in ("F16", "BF16"):
        return raw.view(getattr(torch, "float16" if kind == "F16" else "bfloat16")).view(shape)
    if kind in OURS:
        return torch.from_numpy(OURS[kind](raw.numpy()).astype(np.float32)).view(shape)
    number = next(n for n, name in dequant.GGML_NAME.items() if name == kind)
    return dequant.dequantize(raw, number).view(shape)


def ternary_1(raw: Any) -> Any:
    """TQ1_0, by its definition: five digits of base 3 in a byte, read from the top; then a half."""
    blocks = raw.reshape(-1, 54)
    scale = blocks[:, 52:].copy().view(np.float16).astype(np.float64)
    parts = []
    for start, end, n in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        for power in range(n):
            rest = (blocks[:, start:end].astype(int) * 3**power) % 256
            parts.append(rest * 3 // 256 - 1)
    return np.concatenate(parts, 1) * scale


def ternary_2(raw: Any) -> Any:
    """TQ2_0: four digits of two bits in a byte; then a half."""
    blocks = raw.reshape(-1, 66)
    scale = blocks[:, 64:].copy().view(np.float16).astype(np.float64)
    parts = [(blocks[:, start : start + 32].astype(int) >> 2 * digit) % 4 - 1
             for start in (0, 32) for digit in range(4)]  # fmt: skip
    return np.concatenate(parts, 1) * scale


def microscaled(raw: Any) -> Any:
    """MXFP4: a power of two, and 32 numbers of a sign, two bits of exponent and one of mantissa."""
    blocks = raw.reshape(-1, 17)
    four = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    codes = np.concatenate([blocks[:, 1:] % 16, blocks[:, 1:] // 16], 1)
    return np.where(codes < 8, 1, -1) * four[codes % 8] * 2.0 ** (blocks[:, :1].astype(int) - 127)


OURS = {"TQ1_0": ternary_1, "TQ2_0": ternary_2, "MXFP4": microscaled}
"""What the bytes of other kinds stand for."""
