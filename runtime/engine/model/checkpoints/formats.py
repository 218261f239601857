"""Quantized checkpoints: what the tensors of each format mean. A table of formats, and for each the
weight that a module's tensors stand for, in float32, [n_out, n_in].

Whatever a format does to activations is left out: they stay as the model computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sgc.runtime.engine.model.checkpoints import bits_and_bytes

Parts = Mapping[str, Tensor]
Settings = Mapping[str, Any]
_AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # the positions of the eight numbers in an integer


@dataclass(frozen=True, slots=True)
class Format:
    """needs, may_have: the tensors of a quantized module beside those that every module may have,
    such as a bias. widened: its weight; raises ValueError for settings or shapes that are not the
    format's."""

    needs: tuple[str, ...]
    widened: Callable[[Parts, Settings], Tensor]
    may_have: tuple[str, ...] = ()

    def split(self, key: str) -> tuple[str, str] | None:
        """The module and the name of one of its tensors; None for another key."""
        for name in (*self.may_have, *self.needs):
            if key.endswith(f".{name}"):
                return key.removesuffix(f".{name}"), name
        return None


def _fp8(parts: Parts, settings: Settings) -> Tensor:
    """DeepSeek's: a scale for each block of the weight."""
    block = settings.get("weight_block_size")
    weight, scale = _floats(parts["weight"]), parts["weight_scale_inv"].float()
    if block is None:
        return _scaled(weight, scale)
    if not _is_pair(block):
        raise ValueError(f"weight_block_size must be two numbers, not {block!r:.50}")
    blocks = tuple(-(-n // size) for n, size in zip(weight.shape, block, strict=True))
    if tuple(scale.shape) != blocks:
        raise ValueError(f"{list(scale.shape)} scales for {list(blocks)} blocks")
    wide = scale.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return weight * wide[: weight.shape[0], : weight.shape[1]]


def _compressed(parts: Parts, settings: Settings) -> Tensor:
    """compressed-tensors': a scale of all, or of each output; or of each group of its inputs."""
    weight, scale = parts["weight"], parts["weight_scale"].float()
    if "weight_zero_point" in parts and bool((parts["weight_zero_point"] != 0).any()):
        raise ValueError("it has zero points, which are not applied here")
    wide = weight.float() if weight.dtype == torch.int8 else _floats(weight)
    if scale.ndim == 2 and scale.shape[1] > 1:
        _check_groups(wide.shape[1], scale.shape[1])
        scale = scale.repeat_interleave(wide.shape[1] // scale.shape[1], 1)
    return _scaled(wide, scale)


def _awq(parts: Parts, settings: Settings) -> Tensor:
    """(q - zero) * scale, of each group of inputs; eight numbers lie interleaved in an integer."""
    if (settings.get("bits", 4), settings.get("version", "gemm")) != (4, "gemm"):
        raise ValueError("only 4 bits in the version gemm are known")

    def unpacked(packed: Tensor) -> Tensor:
        each = _integers(packed, 4, 1)
        return each.view(len(each), -1, 8)[:, :, _AWQ_ORDER].flatten(1)

    q, zeros = unpacked(parts["qweight"]), unpacked(parts["qzeros"])
    scales = parts["scales"].float()
    groups = _groups(q.shape[0], scales.shape[0])
    return ((q - zeros[groups]) * scales[groups]).T


def _gptq(parts: Parts, settings: Settings) -> Tensor:
    """(q - zero) * scale; g_idx says which group an input is of. Zeros are stored less one, but in
    version 2."""
    bits = settings.get("bits", 4)
    if bits not in (2, 4, 8):
        raise ValueError(f"{bits!r:.50} bits are not known; 2, 4 and 8 are")
    q, zeros = _integers(parts["qweight"], bits, 0), _integers(parts["qzeros"], bits, 1)
    if settings.get("checkpoint_format", "gptq") != "gptq_v2":
        zeros = (zeros + 1) & (2**bits - 1)
    scales = parts["scales"].float()
    groups = parts["g_idx"].long() if "g_idx" in parts else _groups(q.shape[0], scales.shape[0])
    if len(groups) != q.shape[0] or not 0 <= int(groups.min()) <= int(groups.max()) < len(scales):
        raise ValueError("g_idx names groups that are not there")
    return ((q - zeros[groups]) * scales[groups]).T


_PACKED = ("qweight", "qzeros", "scales")
FORMATS: Mapping[str, Format] = {
    "fp8": Format(("weight", "weight_scale_inv"), _fp8, ("activation_scale", "input_scale")),
    "compressed-tensors": Format(
        ("weight", "weight_scale"), _compressed,
        ("input_scale", "input_zero_point", "weight_zero_point", "weight_shape"),
    ),
    "awq": Format(_PACKED, _awq),
    "gptq": Format(_PACKED, _gptq, ("g_idx",)),
    "bitsandbytes": Format(("weight",), bits_and_bytes.widened, bits_and_bytes.MAY_HAVE),
}  # fmt: skip


def _floats(weight: Tensor) -> Tensor:
    if not weight.is_floating_point():
        raise ValueError(f"its weight is of {weight.dtype}, not of floating point numbers")
    return weight.float()


def _scaled(weight: Tensor, scale: Tensor) -> Tensor:
    """scale: of all, of each output, or of each number."""
    shapes = {(), (1,), (1, 1), (len(weight), 1), tuple(weight.shape)}
    if scale.shape == weight.shape[:1] and len(weight) > 1:
        scale = scale[:, None]
    if tuple(scale.shape) not in shapes:
        raise ValueError(f"{list(scale.shape)} scales for a weight of {list(weight.shape)}")
    return weight * scale


def _integers(packed: Tensor, bits: int, axis: int) -> Tensor:
    """The numbers in integers of 32 bits, the lowest first, along an axis."""
    if packed.dtype != torch.int32 or packed.ndim != 2:
        raise ValueError(f"packed numbers are of {packed.dtype} {list(packed.shape)}")
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    shifts = shifts[:, None] if axis == 0 else shifts
    each: Tensor = (packed.unsqueeze(axis + 1) >> shifts) & (2**bits - 1)
    return each.flatten(axis, axis + 1)


def _groups(n_in: int, n_groups: int) -> Tensor:
    """The group of each input."""
    _check_groups(n_in, n_groups)
    return torch.arange(n_in) // (n_in // n_groups)


def _check_groups(n_in: int, n_groups: int) -> None:
    if not n_groups or n_in % n_groups:
        raise ValueError(f"{n_in} inputs are no {n_groups} groups of one size")


def _is_pair(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and len(value) == 2
    return is_list and all(type(n) is int and n > 0 for n in value)
