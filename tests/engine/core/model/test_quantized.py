"""Quantized folders: made here by each format's own definition, and loaded as ordinary models of
the weights that the numbers stand for."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.core.model.test_fused import make_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from sgc.errors import LoadError
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.models import resolve
from sgc.runtime.engine.model.runner import UnsupportedModel
from sgc.runtime.engine.model.self_check import own_logits
from sgc.runtime.engine.model.transformers_files import load_transformers_model

AWQ_PLACES = (0, 2, 4, 6, 1, 3, 5, 7)  # the number that each four bits hold, the lowest first
GROUP = 16
Made = tuple[dict[str, Tensor], Tensor]
"""A module's tensors, and the weight that they stand for."""


def packed(numbers: Tensor, bits: int, axis: int, places: tuple[int, ...] | None = None) -> Tensor:
    """Whole numbers in integers of 32 bits, one after the other along an axis."""
    n = 32 // bits
    rows = numbers.long().unflatten(axis, (-1, n)).movedim(axis + 1, 0)
    order = places or tuple(range(n))
    whole = sum(rows[place] << (bits * at) for at, place in enumerate(order))
    assert isinstance(whole, Tensor)
    return (whole - ((whole >> 31) << 32)).to(torch.int32)


def groups(weight: Tensor, bits: int, shape: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """q and zeros: from 0 to 2**bits - 1; scales: of each group of inputs. [n_in, n_out]"""
    top = 2**bits - 1
    q = torch.randint(0, top + 1, (shape[1], shape[0]))
    zeros = torch.randint(0, top + 1, (shape[1] // GROUP, shape[0]))
    scales = (torch.rand(shape[1] // GROUP, shape[0]) + 0.5) * 0.6 / top
    return q, zeros, scales


def awq(weight: Tensor) -> Made:
    q, zeros, scales = groups(weight, 4, tuple(weight.shape))
    wide = (q - zeros.repeat_interleave(GROUP, 0)) * scales.repeat_interleave(GROUP, 0)
    tensors = {
        "qweight": packed(q, 4, 1, AWQ_PLACES),
        "qzeros": packed(zeros, 4, 1, AWQ_PLACES),
        "scales": scales,
    }
    return tensors, wide.T


def gptq(bits: int, version: int = 1, *, shuffled: bool = False) -> Callable[[Tensor], Made]:
    def made(weight: Tensor) -> Made:
        q, zeros, scales = groups(weight, bits, tuple(weight.shape))
        group = torch.arange(len(q)) // GROUP
        if shuffled:
            group = group[torch.randperm(len(group))]
        wide = (q - zeros[group]) * scales[group]
        stored = zeros if version == 2 else (zeros - 1) % 2**bits
        tensors = {
            "qweight": packed(q, bits, 0), "qzeros": packed(stored, bits, 1), "scales": scales,
            "g_idx": group.to(torch.int32),
        }  # fmt: skip
        return tensors, wide.T

    return made


def fp8(weight: Tensor) -> Made:
    scale = torch.rand(-(-weight.shape[0] // 24), -(-weight.shape[1] // GROUP)) * 0.1 + 0.05
    wide = scale.repeat_interleave(24, 0).repeat_interleave(GROUP, 1)
    wide = wide[: weight.shape[0], : weight.shape[1]]
    numbers = (weight / wide).to(torch.float8_e4m3fn)
    return {"weight": numbers, "weight_scale_inv": scale}, numbers.float() * wide


def compressed(dtype: torch.dtype, *, of_all: bool = False) -> Callable[[Tensor], Made]:
    def made(weight: Tensor) -> Made:
        scale = torch.full((1,), 0.02) if of_all else torch.rand(len(weight), 1) * 0.02 + 0.01
        numbers = (weight / scale).round().clamp(-127, 127).to(dtype)
        tensors = {"weight": numbers, "weight_scale": scale, "input_scale": torch.ones(1)}
        return tensors, numbers.float() * scale

    return made


def eight_bits(weight: Tensor) -> Made:
    largest = weight.abs().amax(1)
    numbers = (weight / largest[:, None] * 127).round().to(torch.int8)
    tensors = {
        "weight": numbers, "SCB": largest, "weight_format": torch.zeros((), dtype=torch.uint8)
    }  # fmt: skip
    return tensors, numbers.float() * largest[:, None] / 127


def four_bits(kind: str, *, double: bool = False, stored: torch.dtype = torch.uint8) -> Any:
    """Of bitsandbytes; its tables are these: 16 values, and 256."""
    table, scales = torch.linspace(-1, 1, 16) ** 3, torch.linspace(-1, 1, 256)

    def made(weight: Tensor) -> Made:
        blocks = weight.reshape(-1, 32)
        largest = blocks.abs().amax(1)
        state: dict[str, Any] = {"quant_type": kind, "blocksize": 32, "dtype": "float32",
                                 "shape": list(weight.shape)}  # fmt: skip
        tensors = {"weight.absmax": largest, "weight.quant_map": table}
        if double:
            offset, top = largest.mean(), (largest - largest.mean()).abs().reshape(-1, 16).amax(1)
            each = top.repeat_interleave(16)
            held = ((largest - offset) / each)[:, None].sub(scales).abs().argmin(1)
            largest = scales[held] * each + offset
            state |= {"nested_blocksize": 16, "nested_dtype": "float32"}
            state["nested_offset"] = offset.item()
            tensors |= {"weight.absmax": held.to(torch.uint8), "weight.nested_absmax": top,
                        "weight.nested_quant_map": scales}  # fmt: skip
        places = (blocks / largest[:, None])[..., None].sub(table).abs().argmin(-1)
        pairs = places.flatten().to(torch.uint8).view(-1, 2)
        tensors |= {"weight": (pairs[:, :1] << 4 | pairs[:, 1:]).view(-1).view(stored)[:, None],
                    f"weight.quant_state.bitsandbytes__{kind}": told(state)}  # fmt: skip
        return tensors, (table[places] * largest[:, None]).view(weight.shape)

    return made


BNB_4 = {"quant_method": "bitsandbytes", "load_in_4bit": True}
CASES: dict[str, tuple[dict[str, Any], Callable[[Tensor], Made]]] = {
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm"}, awq),
    "gptq 4": ({"quant_method": "gptq", "bits": 4}, gptq(4)),
    "gptq 8": ({"quant_method": "gptq", "bits": 8, "desc_act": True}, gptq(8, shuffled=True)),
    "gptq 2": (
        {"quant_method": "gptq", "bits": 2, "checkpoint_format": "gptq_v2"}, gptq(2, 2),
    ),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [24, GROUP]}, fp8),
    "fp8 of all": (
        {"quant_method": "compressed-tensors", "format": "float-quantized"},
        compressed(torch.float8_e4m3fn, of_all=True),
    ),
    "int8": (
        {"quant_method": "compressed-tensors", "format": "int-quantized"}, compressed(torch.int8),
    ),
    "nf4": (BNB_4, four_bits("nf4")),
    "nf4 double": (BNB_4, four_bits("nf4", double=True)),
    "fp4 in floats": (BNB_4, four_bits("fp4", stored=torch.float16)),
    "LLM.int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, eight_bits),
}  # fmt: skip


def save(folder: Path, settings: dict[str, Any], make: Callable[[Tensor], Made]) -> Any:
    """Quantizes the products of a model's layers; returns the model of what they stand for."""
    model = make_model("Llama", {})
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    torch.manual_seed(1)
    for key in [key for key in tensors if key.endswith("_proj.weight")]:
        made, wide = make(tensors.pop(key))
        module = key.removesuffix(".weight")
        tensors |= {
            f"{module}.{name}": tensor.contiguous().clone() for name, tensor in made.items()
        }
        model.get_parameter(key).data = wide.contiguous().float()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    change(folder, quantization_config=settings)
    return model


def change(folder: Path, **settings: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize("name", CASES)
def test_the_weights_are_what_the_numbers_stand_for(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right = save(tmp_path, *CASES[name])
    with caplog.at_level(logging.WARNING):
        found = load_transformers_model(str(tmp_path), "auto")
    for key, weight in right.state_dict().items():
        assert torch.allclose(found.state_dict()[key], weight, rtol=1e-6, atol=1e-7), key
    method = CASES[name][0]["quant_method"]
    assert f"is quantized ({method}): its weights are widened to float32" in caplog.text


@pytest.mark.parametrize("name", ["awq", "fp8"])
def test_it_is_served_as_an_ordinary_model(name: str, tmp_path: Path) -> None:
    """On our own kernels where they are, and its logits are checked as any model's."""
    right = save(tmp_path, *CASES[name])
    runner = load_model(str(tmp_path), pool_tokens=64)
    assert runner.dtype_name == "float32"
    ids = torch.arange(20)[None]
    exact = own_logits(right, ids)
    half = own_logits(load_transformers_model(str(tmp_path), "bfloat16"), ids)
    assert float((half - exact).norm() / exact.norm()) < 0.1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"load_in_4bit": True}, "not the model's .*down_proj.qweight"),
        ({"quant_method": "no-such-format"}, "not the model's .*down_proj.qweight"),
        ({"bits": 4}, "names no quant_method"),
        ([1], "names no quant_method"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "compressed.tensors"),
    ],
)
def test_other_formats_are_refused_with_the_reason(tmp_path: Path, settings: Any, why: str) -> None:
    """By transformers, where the package that its loader needs is not installed."""
    save(tmp_path, *CASES["awq"])
    change(tmp_path, quantization_config=settings)
    with pytest.raises((LoadError, UnsupportedModel), match=why):
        load_transformers_model(str(tmp_path), "auto")


Q = "model.layers.1.self_attn.q_proj"
NF4 = "weight.quant_state.bitsandbytes__nf4"


def told(state: object) -> Tensor:
    return torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "settings", "changed", "why"),
    [
        ("awq", {"bits": 3}, {}, "only 4 bits in the version gemm"),
        ("awq", {"version": "gemv"}, {}, "only 4 bits in the version gemm"),
        ("awq", {}, {"scales": torch.ones(5, 64)}, "32 inputs are no 5 groups"),
        ("awq", {}, {"qzeros": None}, "it lacks qzeros"),
        ("awq", {}, {"qweight": torch.ones(32, 8)}, "packed numbers are of torch.float32"),
        ("gptq 4", {"bits": 3}, {}, "3 bits are not known"),
        ("gptq 4", {}, {"g_idx": torch.full((32,), 9)}, "groups that are not there"),
        ("fp8", {"weight_block_size": [0, 1]}, {}, "must be two numbers"),
        ("fp8", {}, {"weight_scale_inv": torch.ones(2, 2)}, "scales for"),
        ("int8", {}, {"weight_scale": torch.ones(7)}, "scales for a weight of"),
        ("int8", {}, {"weight_zero_point": torch.ones(64, 1)}, "has zero points"),
        ("LLM.int8", {}, {"SCB": torch.ones(3)}, "scales for a weight of"),
        ("LLM.int8", {}, {"SCB": None}, "neither SCB nor quant_state"),
        ("LLM.int8", {}, {"weight_format": torch.ones((), dtype=torch.uint8)}, "not in rows"),
        ("nf4", {}, {"weight.quant_map": torch.ones(15)}, "quant_map has 15 values, not 16"),
        ("nf4", {}, {"weight.absmax": None}, "it lacks weight.absmax"),
        ("nf4", {}, {"weight.absmax": torch.ones(3)}, "3 blocks of 32 for 2048 numbers"),
        ("nf4", {}, {NF4: told({"shape": [2**20, 2**30], "blocksize": 2**30})}, "1024 bytes for"),
        ("nf4", {}, {NF4: told({"shape": [64, 32], "blocksize": 0})}, "64 blocks of 0 for"),
        ("nf4", {}, {NF4: told({"shape": -1})}, "shape must be two sizes"),
        ("nf4", {}, {NF4: told([[]] * 9)}, "no JSON object"),
        ("nf4", {}, {NF4: torch.full((9000,), 91, dtype=torch.uint8)}, "cannot be used"),
        ("nf4", {}, {NF4: torch.zeros(70_000, dtype=torch.uint8)}, "quant_state is of"),
        ("nf4 double", {}, {"weight.nested_quant_map": None}, "lacks weight.nested_quant_map"),
        ("nf4 double", {}, {"weight.nested_absmax": None}, "without nested_absmax"),
    ],
)
def test_damaged_folders_are_typed_errors(
    name: str, settings: dict, changed: dict, why: str, tmp_path: Path
) -> None:
    own, make = CASES[name]
    save(tmp_path, {**own, **settings}, make)
    tensors = load_file(tmp_path / "model.safetensors")
    for part, tensor in changed.items():
        tensors.pop(f"{Q}.{part}", None)
        tensors |= {} if tensor is None else {f"{Q}.{part}": tensor}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match=why):
        load_transformers_model(str(tmp_path), "auto")


def test_a_module_that_was_left_as_it_was(tmp_path: Path) -> None:
    """Such as a head beside products in eight bits: its tensor has the same name."""
    right = save(tmp_path, *CASES["int8"])
    found = load_transformers_model(str(tmp_path), "auto")
    assert torch.equal(found.lm_head.weight, right.lm_head.weight)


def test_a_gguf_file_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    (tmp_path / "model-q4.gguf").write_bytes(b"GGUF")
    for name in (tmp_path, tmp_path / "model-q4.gguf"):
        with pytest.raises(LoadError, match=r"q4\.gguf is a GGUF file.*\n.*'sgc\[gguf\]'"):
            resolve(str(name))
