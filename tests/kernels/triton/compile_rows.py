"""Compiles kernels for GPUs, with no GPU here: run as a program, in a process without Triton's
interpreter. Prints a line of JSON for each kernel and GPU: what it takes of the chip."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from sgc.kernels.triton import activations, adjusting, cuts, norms, place, sampling, scores

GPUS = (80, 90)

_ROW = {"allowed": "*i32", "is_masked": "*i1"}
_ROW_STRIDES = dict.fromkeys(("logits_stride", "allowed_stride", "vocab"), "i32")
_HOW = {"packed": "*i64", "temperatures": "*fp32", "top_ks": "*i32", "top_ps": "*fp64"}
_FOUND = dict.fromkeys(("sums", "lengths", "cuts", "masses", "equals", "tokens"), "*i64")
_DRAWN = {
    **_ROW, **_ROW_STRIDES, **_HOW, **_FOUND, "lists": "*i32", "min_ps": "*fp32",
    "points": "*fp64", "n_chunks": "i32",
}  # fmt: skip
_LISTS = {
    "logits": "*fp32", "starts": "*i32", "ids": "*i32", "counts": "*fp32", "repetition": "*fp64",
    "frequency": "*fp64", "presence": "*fp64", "biases": "*fp32", "stride": "i32", "vocab": "i32",
}  # fmt: skip
_PLACED = {
    **dict.fromkeys(("qkv", "q", "k_pool", "v_pool", "q_weight", "k_weight"), "*bf16"),
    **dict.fromkeys(("positions", "slots"), "*i64"), "cos_sin": "*fp32",
    "q_eps": "fp32", "k_eps": "fp32", "n_pages": "i32", "n_positions": "i32",
    **{f"{name}_stride": "i32" for name in ("qkv", "k_page", "k_head", "v_page", "v_head")},
}  # fmt: skip
_LAID = {
    "N_HEADS": 32, "N_KV_HEADS": 8, "IS_INTERLEAVED": False, "Q_NORM": True, "K_NORM": True,
    "Q_IS_WIDE": False, "K_IS_WIDE": False,
}  # fmt: skip
_NORMED = {
    **dict.fromkeys(("x", "weight", "residual", "out"), "*bf16"), "width": "i32", "eps": "fp32",
    **{f"{name}_stride": "i32" for name in ("x", "residual", "out")},
}  # fmt: skip
_SCORED = {
    "logits": "*bf16", "index_rows": "*i64", "tokens": "*i64", "best": "*fp32", "total": "*fp32",
    "out": "*fp32", **dict.fromkeys(("stride", "n", "vocab", "n_chunks"), "i32"),
}  # fmt: skip


def _norm_rows():
    for width in (896, 4096, 8192, 16384):
        block = triton.next_power_of_2(width)
        constants = {"BLOCK": block, "IS_WIDE": False}
        yield f"rms_norm {width}", norms._rms_norm, _NORMED, constants, norms.warps_of(block)
    pair = {"pair": "*bf16", "out": "*bf16", "pair_stride": "i32", "inner": "i32"}
    for is_silu in (True, False):
        constants = {"IS_SILU": is_silu, "BLOCK": activations._BLOCK}
        yield f"gated silu={is_silu}", activations._gated, pair, constants, activations._WARPS


def _place_rows():
    for head_dim, n_rotated in ((64, 64), (128, 128), (128, 64), (256, 256)):
        heads = {"HEADS": place._TILE // head_dim, "BLOCK": head_dim}
        constants = {**_LAID, "HEAD_DIM": head_dim, "N_ROTATED": n_rotated, **heads}
        yield f"place {head_dim}/{n_rotated}", place._place, _PLACED, constants, place._WARPS


def _draw_rows():
    for name in ("*fp32", "*bf16"):
        signature = {**_DRAWN, "logits": name}
        how, warps = {"CHUNK": sampling._CHUNK}, sampling._WARPS
        cut = {**how, "IS_CUT": True}
        yield f"best {name}", sampling._best, signature, how, warps
        yield f"totals {name}", cuts.totals, signature, how, warps
        yield f"gather {name}", cuts.gather, signature, how, warps
        yield f"masses {name}", sampling._masses, signature, cut, warps
        yield f"draw {name}", sampling._draw, signature, {**cut, "CHUNKS": 32}, warps
    yield "finish", cuts.finish, _DRAWN, {"BLOCK": sampling._LIST}, sampling._WARPS


def _list_rows():
    block = {"BLOCK": adjusting._BLOCK}
    yield "penalize", adjusting._penalize, _LISTS, block, adjusting._WARPS
    yield "bias", adjusting._bias, _LISTS, block, adjusting._WARPS
    yield "sums", scores._sums, _SCORED, {"CHUNK": scores._CHUNK}, scores._WARPS
    yield "scores", scores._scores, _SCORED, {"CHUNKS": 32}, 1


def rows():
    """(name, kernel, signature, constants, warps) of each kernel at block sizes really used."""
    yield from _norm_rows()
    yield from _place_rows()
    yield from _draw_rows()
    yield from _list_rows()


def compiled(kernel, signature, constants, warps, target):
    names = kernel.arg_names
    types = {n: "constexpr" if n in constants else signature[n] for n in names}
    values = {(names.index(n),): value for n, value in constants.items()}
    aligned = [["tt.divisibility", 16]]
    attributes = {
        (i,): aligned
        for i, n in enumerate(names)
        if types[n].startswith("*") or n.endswith(("stride", "vocab", "width", "inner"))
    }
    source = ASTSource(kernel, types, values, attributes)
    return triton.compile(source, target=target, options={"num_warps": warps})


def used(binary):
    """Registers a thread, and bytes of stack and shared memory, as cuobjdump tells them."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(binary.asm["cubin"])
        command = [tool, "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack, local = (
        int(re.search(rf"{name}:(\d+)", text).group(1)) for name in ("REG", "STACK", "LOCAL")
    )
    shared = binary.metadata.shared
    return {"registers": registers, "stack": stack, "local": local, "shared": shared}


def main():
    warnings.simplefilter("ignore")
    for name, kernel, signature, constants, warps in rows():
        for gpu in GPUS:
            target = GPUTarget("cuda", gpu, 32)
            binary = compiled(kernel, signature, constants, warps, target)
            row = {"kernel": name, "gpu": gpu, "warps": warps, **used(binary)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
