"""Reads the headers of safetensors files, strictly: which tensors a folder has. It reads no weights
and imports no library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from sgc.errors import LoadError
from sgc.runtime.engine.text.json_files import (
    AGAIN,
    Json,
    open_file,
    parse_object,
    read_json,
    refuse,
)

INDEX = "model.safetensors.index.json"
MAX_HEADER_BYTES = 100_000_000  # the format's own limit
MAX_DIMENSIONS = 64
# What a config.json calls them.
N_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "n_embd", "n_inner", "d_model",
         "ffn_dim", "head_dim", "num_attention_heads", "num_key_value_heads", "num_experts",
         "num_local_experts", "n_routed_experts")  # fmt: skip
# What a model that attends has at least one of.
POSITIVE = ("vocab_size", "hidden_size", "head_dim", "num_attention_heads", "num_key_value_heads",
            "max_position_embeddings")  # fmt: skip
MAX_POSITIONS = 2**31 - 1  # what messages can count
# Bits of one number.
TYPES = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """type: one of `TYPES`. start, end: the range of its bytes, counted from the header's end."""

    type: str
    shape: tuple[int, ...]
    start: int
    end: int


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the model's weights, those of an index included; raises `LoadError`."""
    index = folder / INDEX
    names = read_json(index).get("weight_map")
    if names is None and index.exists():
        refuse(index, "it has no weight_map")
    found = set(folder.glob("*.safetensors"))
    for name in {repr(each): each for each in (names or {}).values()}.values():
        if not _is_plain_name(name):
            refuse(
                index, f"its weight_map names {name!r:.200}, which is no .safetensors file in there"
            )
        if not (folder / name).exists():
            raise LoadError(f"{folder / name} is missing; the model's index names it", hint=AGAIN)
        found.add(folder / name)
    return sorted(found)


def read_headers(folder: Path) -> dict[str, TensorHeader]:
    """The headers of all tensors in the folder's files; raises `LoadError`."""
    found: dict[str, TensorHeader] = {}
    for path in weight_files(folder):
        found |= read_header(path)
    return found


def read_header(path: Path) -> dict[str, TensorHeader]:
    """The headers by name; raises `LoadError` unless the tensors fill the file exactly."""
    try:
        with open_file(path) as file:
            size = file.seek(0, 2)
            file.seek(0)
            n_header = int.from_bytes(file.read(8), "little")
            if size < 8 or n_header > size - 8:
                raise LoadError(f"{path} is cut off: it has {size} bytes", hint=AGAIN)
            if n_header > MAX_HEADER_BYTES:
                raise _damaged(path, f"its header would have {n_header} bytes")
            header = file.read(n_header)
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror}", hint=AGAIN) from error
    try:
        values = parse_object(header, path)
    except LoadError as error:
        raise _damaged(path, f"its header cannot be read ({error.message})") from error
    values.pop("__metadata__", None)
    tensors = {name: _tensor(path, name, value) for name, value in values.items()}
    at = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if tensor.start != at:
            raise _damaged(path, f"{name!r:.200} does not begin where the tensor before it ends")
        at = tensor.end
    if size != 8 + n_header + at:
        raise LoadError(
            f"{path} is cut off or damaged: it has {size} bytes, and its header says "
            f"{8 + n_header + at}",
            hint=AGAIN,
        )
    return tensors


def check_sizes(path: Path, values: Json, headers: Mapping[str, TensorHeader]) -> None:
    """Refuses absurd sizes: the model would be built before it is compared with the weights."""
    largest = max((math.prod(tensor.shape) for tensor in headers.values()), default=0)
    for names, most, what in (
        (N_LAYERS, len(headers), f"the weights hold {len(headers)} tensors"),
        (SIZES, largest, f"the largest tensor holds {largest} numbers"),
    ):
        for name in names:
            n: Any = values.get(name)
            if isinstance(n, int) and n > most:
                refuse(path, f"{name} is {n}, but {what}")


def check_counts(path: Path, values: Json) -> None:
    """Refuses a model of no heads or positions, or of more positions than messages can count."""
    for name in POSITIVE:
        n: Any = values.get(name)
        if isinstance(n, int) and n < 1:
            refuse(path, f"{name} is {n}, and must be at least 1")
    n = values.get("max_position_embeddings")
    if isinstance(n, int) and n > MAX_POSITIONS:
        refuse(path, f"max_position_embeddings is {n}, of at most {MAX_POSITIONS}")


def _tensor(path: Path, name: str, value: Any) -> TensorHeader:
    fields = value if isinstance(value, dict) else {}
    kind: Any = fields.get("dtype")
    shape: Any = fields.get("shape")
    place: Any = fields.get("data_offsets")
    is_tensor = isinstance(kind, str) and kind in TYPES and _are_sizes(shape) and _are_sizes(place)
    if not is_tensor or len(place) != 2:
        raise _damaged(path, f"what its header says of {name!r:.200} is no tensor")
    start, end = place
    if math.prod(shape) * TYPES[kind] != (end - start) * 8:
        raise _damaged(path, f"{name!r:.200} has another size than its shape and type say")
    return TensorHeader(kind, tuple(shape), start, end)


def _are_sizes(value: Any) -> bool:
    is_short = isinstance(value, list) and len(value) <= MAX_DIMENSIONS
    return is_short and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _is_plain_name(name: Any) -> bool:
    """Whether it names a safetensors file in the folder or below it."""
    if not isinstance(name, str) or not name.endswith(".safetensors") or "\0" in name:
        return False
    kinds = (PurePosixPath(name), PureWindowsPath(name))
    return not any(path.is_absolute() or path.drive or ".." in path.parts for path in kinds)


def _damaged(path: Path, why: str) -> LoadError:
    return LoadError(f"{path} is not a safetensors file, or damaged: {why}", hint=AGAIN)
