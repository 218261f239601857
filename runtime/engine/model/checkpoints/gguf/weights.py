"""The weights of a GGUF file under the names, and in the form, of transformers' model.

`gguf` knows llama.cpp's names and how its numbers are packed; what its converter does to weights is
undone here (`Architecture`). The step process calls it; the header is read, and bounded, again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.gguf.files import Gguf, files_of, is_gguf, read
from sgc.runtime.engine.model.checkpoints.gguf.header import KINDS, GgufTensor
from sgc.runtime.engine.model.checkpoints.gguf.settings import (
    FREQUENCIES,
    LONG,
    SHORT,
    Architecture,
    architecture_of,
)
from sgc.runtime.engine.text.json_files import AGAIN, open_file

IN_CONFIG = frozenset({FREQUENCIES, LONG, SHORT})  # tensors that config.json has
_MAX_NAMED = 5
_QUERIES, _KEYS = r"\.q_proj\.(weight|bias)$", r"\.k_proj\.(weight|bias)$"
_GATES = re.compile(r"model\.layers\.(\d+)\.mlp\.experts\.gate_up_proj")
_DOWNS = re.compile(r"model\.layers\.(\d+)\.mlp\.experts\.down_proj")
_Array = npt.NDArray[Any]


def gguf_of(folder: Path) -> Gguf | None:
    """The GGUF model whose files a folder has, or links to; None if it has none, or others."""
    return read(files_of(folder)) if is_gguf(folder) else None


def told(gguf: Gguf, n_bytes: int, dtype: str) -> str:
    """The warning about a quantized file. n_bytes: the memory of its widened weights."""
    return (
        f"{gguf.path} is quantized ({_quantization(gguf)}): its weights are widened to {dtype}, "
        f"{_size(n_bytes)} in memory for {_size(gguf.n_bytes)} of the file"
    )


def weights(gguf: Gguf, config: Any, dtype: torch.dtype) -> dict[str, Tensor]:
    """All tensors of the model of a configuration. Raises `LoadError`."""
    row, keys = architecture_of(gguf)
    kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    with torch.device("meta"):
        model = kind(config)
    names = _names(gguf, keys.architecture, config.num_hidden_layers)
    wanted = {key: names(key) for key in model.state_dict()}
    if config.tie_word_embeddings:
        wanted.pop("lm_head.weight", None)
    _check_names(gguf, wanted)
    return {
        key: _tensor(gguf, key, sources, row, config).to(dtype) for key, sources in wanted.items()
    }


def _names(gguf: Gguf, architecture: str, n_layers: int) -> Callable[[str], list[str]]:
    """A function from a name of transformers to those of the tensors that it is made of."""
    import gguf as library

    arch = next(each for each, name in library.MODEL_ARCH_NAMES.items() if name == architecture)
    table = library.get_tensor_name_map(arch, n_layers)

    def names(key: str) -> list[str]:
        if found := _GATES.fullmatch(key):
            return [f"blk.{found[1]}.ffn_{each}_exps.weight" for each in ("gate", "up")]
        if found := _DOWNS.fullmatch(key):
            return [f"blk.{found[1]}.ffn_down_exps.weight"]
        name = table.get_name(key, try_suffixes=(".weight", ".bias"))
        return [key if name is None else name]

    return names


def _check_names(gguf: Gguf, wanted: dict[str, list[str]]) -> None:
    needed = {name for names in wanted.values() for name in names}
    problems = {
        "missing": needed - gguf.tensors.keys(),
        "not the model's": gguf.tensors.keys() - needed - IN_CONFIG,
    }
    said = [f"{len(names)} {what} ({_listed(names)})" for what, names in problems.items() if names]
    if said:
        raise LoadError(
            f"the tensors in {gguf.path} are not those of its settings: {'; '.join(said)}",
            hint="serve the model's folder of safetensors",
        )


def _tensor(gguf: Gguf, key: str, names: Sequence[str], row: Architecture, config: Any) -> Tensor:
    each = [_array(gguf.tensors[name]) for name in names]
    found = each[0] if len(each) == 1 else np.concatenate(each, axis=1)  # gate and up of experts
    if row.rotates_pairs:
        for pattern, n_heads in (
            (_QUERIES, config.num_attention_heads),
            (_KEYS, config.num_key_value_heads),
        ):
            if re.search(pattern, key):
                found = _halves(gguf, key, found, n_heads)
    if row.adds_one and key.endswith("norm.weight"):
        found = found - 1
    if key.endswith("shared_expert_gate.weight"):
        found = found.reshape(1, -1)
    return torch.from_numpy(np.ascontiguousarray(found))


def _halves(gguf: Gguf, key: str, found: _Array, n_heads: int) -> _Array:
    """Rows of a head in transformers' order, which rotates its halves."""
    if len(found) % (2 * n_heads):
        raise LoadError(f"{gguf.path}: the {len(found)} rows of {key} are no {n_heads} heads")
    pairs = found.reshape(n_heads, -1, 2, *found.shape[1:])
    return pairs.swapaxes(1, 2).reshape(found.shape)


def _array(tensor: GgufTensor) -> _Array:
    """Its numbers in float32, [*shape]."""
    import gguf as library

    kind = KINDS[tensor.kind]
    with open_file(tensor.path) as file:
        file.seek(tensor.start)
        data = np.fromfile(file, np.uint8, tensor.n_bytes)
    if len(data) != tensor.n_bytes:
        raise LoadError(f"{tensor.path} is cut off", hint=AGAIN)
    rows = data.reshape(-1, tensor.shape[-1] // kind.n_numbers * kind.n_bytes)
    with np.errstate(all="ignore"):  # the check at load finds NaNs
        found: _Array = library.dequantize(rows, library.GGMLQuantizationType(tensor.kind))
    return found.reshape(tensor.shape)


def _quantization(gguf: Gguf) -> str:
    """The quantization's usual name, such as Q4_K_M; else the kind of most bytes."""
    import gguf as library

    kinds = gguf.kinds
    number = gguf.values.get("general.file_type")
    known = {each.value: each.name for each in library.LlamaFileType}
    if type(number) is int and known.get(number, "").startswith("MOSTLY_"):
        return str(known[number]).removeprefix("MOSTLY_")
    return max(kinds, key=lambda name: kinds[name])


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.2f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.1f} MiB"


def _listed(names: set[str]) -> str:
    more = f", and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(repr(name) for name in sorted(names)[:_MAX_NAMED]) + more
