"""Converts a model of `models.py` to GGUF for llama.cpp, by the `gguf` package: bfloat16, or Q8_0.

    python -P benches/engine/peers/gguf_models.py FOLDER…

Writes FOLDER-bf16.gguf and FOLDER-q8_0.gguf beside each model's folder. As in llama.cpp's own
converter, norms and biases are float32, a Llama's Q and K are permuted to its order of rotated
pairs, and Q8_0 is of every product and of the table. The files have no tokenizer: prompts are ids.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np

TYPES = {"bf16": gguf.GGMLQuantizationType.BF16, "q8_0": gguf.GGMLQuantizationType.Q8_0}
ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2}


def path_of(folder: str, kind: str) -> Path:
    return Path(f"{folder.rstrip('/')}-{kind}.gguf")


def convert(folder: Path, kind: str) -> Path:
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES[config["model_type"]]
    target = path_of(str(folder), kind)
    writer = gguf.GGUFWriter(target, gguf.MODEL_ARCH_NAMES[architecture])
    write_settings(writer, config)
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    for key, value in tensors(folder / "model.safetensors"):
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name is not None, key
        if architecture is gguf.MODEL_ARCH.LLAMA:
            value = permuted(key, value, config)
        if value.ndim == 1:
            writer.add_tensor(name, value)
        else:
            writer.add_tensor(name, gguf.quantize(value, TYPES[kind]), raw_dtype=TYPES[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def write_settings(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    n_heads = config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // n_heads)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")


def tensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors of a safetensors file, which must be bfloat16, as float32."""
    data = np.memmap(path, np.uint8, "r")
    n_header = int(data[:8].view(np.int64)[0])
    header = json.loads(bytes(data[8 : 8 + n_header]))
    for key, entry in header.items():
        if key == "__metadata__":
            continue
        assert entry["dtype"] == "BF16", key
        start, end = entry["data_offsets"]
        raw = data[8 + n_header + start : 8 + n_header + end].view(np.uint16)
        wide = (raw.astype(np.uint32) << 16).view(np.float32)
        yield key, wide.reshape(entry["shape"])


def permuted(key: str, weight: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """llama.cpp rotates pairs that lie side by side; transformers, halves of a head."""
    n_heads = {
        "q_proj": config["num_attention_heads"],
        "k_proj": config["num_key_value_heads"],
    }.get(key.split(".")[-2])
    if n_heads is None:
        return weight
    halves = weight.reshape(n_heads, 2, -1, *weight.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    for folder in parser.parse_args().folders:
        for kind in TYPES:
            print(convert(folder, kind))


if __name__ == "__main__":
    main()
