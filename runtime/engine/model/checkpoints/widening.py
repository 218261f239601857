"""Widens the weights of a quantized folder while it is read, so that its model is an ordinary one.

`formats.py` knows what each format's tensors mean; other formats are transformers' to load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.formats import FORMATS, Format
from sgc.runtime.engine.model.weight_files import weight_files
from sgc.runtime.engine.text.json_files import read_json, refuse

_PACKED = "pack-quantized"


def quantization_of(folder: Path) -> Mapping[str, Any] | None:
    """The quantization in config.json, None if there is none that is widened here: what else there
    is, transformers' own loaders read or refuse, as their packages are installed."""
    path = folder / "config.json"
    values = read_json(path)
    found: Any = values.get("quantization_config") or values.get("compression_config")
    if not found:
        return None
    if isinstance(found, dict) and (found.get("load_in_4bit") or found.get("load_in_8bit")):
        found = {"quant_method": "bitsandbytes", **found}  # which old folders do not say
    if not isinstance(found, dict) or not isinstance(found.get("quant_method"), str):
        refuse(path, "its quantization_config names no quant_method")
    is_packed = found.get("format") == _PACKED
    return found if found["quant_method"] in FORMATS and not is_packed else None


def widened(folder: Path, settings: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Tensor]:
    """All tensors of a folder's files, with quantized weights in `dtype`. Raises `LoadError`."""
    format_ = FORMATS[settings["quant_method"]]
    found: dict[str, Tensor] = {}
    waiting: dict[str, dict[str, Tensor]] = {}
    for path in weight_files(folder):
        for key, tensor in _tensors(path):
            place = format_.split(key)
            if place is None:
                found[key] = tensor
            else:
                waiting.setdefault(place[0], {})[place[1]] = tensor
    for module in list(waiting):
        parts = waiting.pop(module)
        found[f"{module}.weight"] = _weight(folder, module, parts, format_, settings).to(dtype)
    return found


def _tensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    with safe_open(path, framework="pt", device="cpu") as file:
        for key in file.keys():  # noqa: SIM118
            yield key, file.get_tensor(key)


def _weight(
    folder: Path,
    module: str,
    parts: Mapping[str, Tensor],
    format_: Format,
    settings: Mapping[str, Any],
) -> Tensor:
    if set(parts) == {"weight"} and parts["weight"].dtype.itemsize > 1:
        return parts["weight"]  # a module that was left as it was
    missing = [name for name in format_.needs if name not in parts]
    try:
        if missing:
            raise ValueError(f"it lacks {missing[0]}")
        return format_.widened(parts, settings)
    except (ValueError, RuntimeError, IndexError, TypeError) as error:
        raise LoadError(
            f"{folder}: the {settings['quant_method']} tensors of {module!r:.200} cannot be used: "
            f"{error}",
            hint="download the model again",
        ) from error
