"""Dequantizes the tensors of a module that bitsandbytes quantized to float32, [n_out, n_in].

Eight bits are rows of int8 with the largest of each row (`SCB`). Four bits are places in a table of
16 values (nf4, fp4), with the largest of each block, which double quantization holds in eight bits
again. Table and sizes come with the tensors, so the package itself is not needed: importing it may
fetch kernels. What a folder's settings say of activations (`llm_int8_threshold`) is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

STATES = ("weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4")
MAY_HAVE = ("SCB", "weight_format", "weight.absmax", "weight.quant_map", "weight.nested_absmax",
            "weight.nested_quant_map", *STATES)  # fmt: skip
_MAX_STATE_BYTES = 64 * 1024
_ROWS = 0  # the only order of int8 weights that was saved on purpose


def widened(parts: Mapping[str, Tensor], _: Mapping[str, Any]) -> Tensor:
    """The weight; raises ValueError for tensors that are not the format's."""
    if "SCB" in parts:
        return _eight_bits(parts)
    for name in STATES:
        if name in parts:
            return _four_bits(parts, _state(parts[name]))
    raise ValueError("it has neither SCB nor quant_state")


def _eight_bits(parts: Mapping[str, Tensor]) -> Tensor:
    weight, largest = parts["weight"], parts["SCB"].float()
    if weight.dtype != torch.int8 or weight.ndim != 2:
        raise ValueError(f"its weight is of {weight.dtype} {list(weight.shape)}, not rows of int8")
    if largest.shape != weight.shape[:1]:
        raise ValueError(f"{list(largest.shape)} scales for a weight of {list(weight.shape)}")
    if "weight_format" in parts and bool((parts["weight_format"] != _ROWS).any()):
        raise ValueError("its weight is not in rows")
    return weight.float() * (largest[:, None] / 127)


def _four_bits(parts: Mapping[str, Tensor], state: Mapping[str, Any]) -> Tensor:
    shape = state.get("shape")
    if not isinstance(shape, list) or len(shape) != 2 or not all(map(_is_size, shape)):
        raise ValueError(f"its shape must be two sizes, not {shape!r:.50}")
    n, packed = math.prod(shape), parts["weight"].contiguous().view(torch.uint8).flatten()
    if 2 * len(packed) != n + n % 2:
        raise ValueError(f"{len(packed)} bytes for a weight of {shape}")
    places = torch.stack([packed >> 4, packed & 15], 1).flatten()[:n]
    largest = _of_blocks(_largest(parts, state), n, state.get("blocksize"))
    return (_looked_up(parts, "weight.quant_map", 16, places) * largest).view(shape)


def _largest(parts: Mapping[str, Tensor], state: Mapping[str, Any]) -> Tensor:
    """The largest absolute value of each block."""
    found = _part(parts, "weight.absmax").flatten()
    if "weight.nested_absmax" not in parts:
        if not found.is_floating_point():
            raise ValueError(f"its absmax is of {found.dtype}, without nested_absmax")
        return found.float()
    if found.dtype != torch.uint8:
        raise ValueError(f"its absmax is of {found.dtype}, beside nested_absmax")
    values = _looked_up(parts, "weight.nested_quant_map", 256, found)
    nested = parts["weight.nested_absmax"].flatten().float()
    largest = _of_blocks(nested, len(found), state.get("nested_blocksize"))
    return values * largest + float(state.get("nested_offset", "nothing"))


def _of_blocks(each: Tensor, n: int, size: Any) -> Tensor:
    """each: a number for each block of `size`. Returns that number for each of n numbers."""
    if not _is_size(size) or len(each) != -(-n // size):
        raise ValueError(f"{len(each)} blocks of {size!r:.50} for {n} numbers")
    return each.repeat_interleave(min(size, n))[:n]


def _looked_up(parts: Mapping[str, Tensor], name: str, n: int, places: Tensor) -> Tensor:
    table = _part(parts, name).flatten().float()
    if len(table) != n:
        raise ValueError(f"its {name} has {len(table)} values, not {n}")
    return table.index_select(0, places.int())


def _part(parts: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in parts:
        raise ValueError(f"it lacks {name}")
    return parts[name]


def _state(packed: Tensor) -> dict[str, Any]:
    if packed.dtype != torch.uint8 or packed.numel() > _MAX_STATE_BYTES:
        raise ValueError(f"its quant_state is of {packed.dtype} {list(packed.shape)}")
    found = json.loads(bytes(packed.flatten().tolist()))
    if not isinstance(found, dict):
        raise ValueError("its quant_state is no JSON object")
    return found


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**31
