"""Compiles the attention kernels for given GPUs, with no GPU here: run as a program, in a process
without Triton's interpreter. Prints a line of JSON for each: what it takes of the chip.

More kernels are more rows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from sgc.kernels.triton.paged import launch
from sgc.kernels.triton.paged.attend_kernel import attend_items
from sgc.kernels.triton.paged.blocks import Shape, blocks, few_rows, many_rows, padded
from sgc.kernels.triton.paged.merge_kernel import merge_parts

GPUS = (80, 90)
ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True)
class Row:
    """One kernel at block sizes that are really used. signature: types of what is no constant."""

    name: str
    kernel: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    n_warps: int
    n_stages: int = 1


def rows() -> Iterator[Row]:
    for head_dim in (64, 80, 96, 112, 128, 192, 256):
        yield from _attend_rows("bf16", head_dim, head_dim, group=4)
    yield from _attend_rows("bf16", 192, 128, group=1)
    yield from _attend_rows("bf16", 128, 128, group=32)
    yield from _attend_rows("fp16", 128, 128, group=7)
    for head_dim in (64, 128, 256):
        yield from _attend_rows("fp32", head_dim, head_dim, group=4)
    extras = {"HAS_WINDOW": True, "HAS_SOFTCAP": True, "HAS_SINKS": True}
    for head_dim in (64, 128, 256):
        yield from _attend_rows("bf16", head_dim, head_dim, group=8, **extras)
    for head_dim in (64, 128, 256):
        yield _merge_row(head_dim)


def _attend_rows(
    dtype: str, head_dim: int, v_head_dim: int, group: int, **extras: bool
) -> Iterator[Row]:
    shape = Shape(8 * group, 8, head_dim, v_head_dim, 132, ITEM_BYTES[dtype])
    signature = {
        **dict.fromkeys(("q", "k_pool", "v_pool", "out"), f"*{dtype}"),
        **dict.fromkeys(("parts", "part_lses", "sinks"), "*fp32"),
        **dict.fromkeys(("items", "tokens", "contexts", "part_starts", "pages"), "*i32"),
        **dict.fromkeys(("scale", "softcap"), "fp32"),
        "window": "i32",
        **dict.fromkeys((n for n in attend_items.arg_names if n.endswith("stride")), "i32"),
    }
    for n_rows in sorted({few_rows(shape), many_rows(shape)}):
        block = blocks(n_rows, shape)
        constants = {
            "N_KV_HEADS": 8,
            "GROUP": group,
            "HEAD_DIM": head_dim,
            "V_HEAD_DIM": v_head_dim,
            "BLOCK_M": n_rows,
            "BLOCK_N": block.n_keys,
            "BLOCK_D": padded(head_dim),
            "BLOCK_V": padded(v_head_dim),
            **dict.fromkeys(("HAS_WINDOW", "HAS_SOFTCAP", "HAS_SINKS"), False),
            **extras,
            "TWO_LOOPS": launch.has_two_loops(n_rows, shape, "HAS_WINDOW" in extras),
            "UPCAST": False,
        }
        name = f"attend {dtype} {head_dim}/{v_head_dim} group {group} rows {n_rows}"
        name += " window softcap sinks" * bool(extras)
        yield Row(name, attend_items, signature, constants, block.n_warps, block.n_stages)


def _merge_row(v_head_dim: int) -> Row:
    signature = {
        "out": "*bf16",
        **dict.fromkeys(("parts", "part_lses", "sinks"), "*fp32"),
        **dict.fromkeys(("merged", "part_starts"), "*i32"),
    }
    constants = {
        "N_HEADS": 32,
        "V_HEAD_DIM": v_head_dim,
        "BLOCK_S": launch.MERGED_AT_ONCE,
        "BLOCK_V": padded(v_head_dim),
        "HAS_SINKS": True,
    }
    return Row(f"merge {v_head_dim}", merge_parts, signature, constants, launch.MERGE_WARPS)


def compiled(row: Row, target: GPUTarget) -> Any:
    """Pointers and strides are multiples of 16, as they are in models."""
    names = row.kernel.arg_names
    types = {n: "constexpr" if n in row.constants else row.signature[n] for n in names}
    values = {(names.index(n),): value for n, value in row.constants.items()}
    attributes = {
        (i,): [["tt.divisibility", 16]]
        for i, n in enumerate(names)
        if types[n].startswith("*") or n.endswith("stride")
    }
    source = ASTSource(row.kernel, types, values, attributes)
    options = {"num_warps": row.n_warps, "num_stages": row.n_stages}
    return triton.compile(source, target=target, options=options)


def used(binary: Any) -> dict[str, int]:
    """Registers a thread, bytes that are spilled, and how often loops reach for them, bytes of
    shared memory, and how many copies and matrix products its code has: `cp16`, of 16 bytes to
    shared memory, and `cp4`, of less."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(binary.asm["cubin"])
        text = _told("cuobjdump", "--dump-resource-usage", file.name)
        code = _told("nvdisasm", "-c", file.name)
    found = {name: int(re.findall(rf"{name}:(\d+)", text)[0]) for name in ("REG", "STACK")}
    ptx = binary.asm["ptx"]
    return {
        "registers": found["REG"],
        "spilled": found["STACK"],
        "in_loops": _n_local_in_loops(code.splitlines()),
        "shared": binary.metadata.shared,
        "cp16": ptx.count("cp.async.cg.shared"),
        "cp4": ptx.count("cp.async.ca.shared"),
        "wgmma": ptx.count("wgmma.mma_async"),
        "mma": ptx.count("mma.sync"),
    }


def _told(tool: str, *arguments: str) -> str:
    path = Path(triton.__file__).parent / "backends/nvidia/bin" / tool
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=True).stdout


def _n_local_in_loops(lines: list[str]) -> int:
    """Loads and stores of local memory between a branch back and where it goes."""
    places = {line.strip().rstrip(":"): i for i, line in enumerate(lines) if line.startswith(".L")}
    n = 0
    for i, line in enumerate(lines):
        target = re.search(r"BRA.*`\((\.L\w+)\)", line)
        if target and (start := places[target[1]]) < i:
            n += sum(bool(re.search(r"\b(LDL|STL)\b", inside)) for inside in lines[start:i])
    return n


def main() -> None:
    warnings.simplefilter("ignore")
    for row in rows():
        for gpu in GPUS:
            told = {"kernel": row.name, "gpu": gpu, "warps": row.n_warps, "stages": row.n_stages}
            print(
                json.dumps({**told, **used(compiled(row, GPUTarget("cuda", gpu, 32)))}), flush=True
            )


if __name__ == "__main__":
    sys.exit(main())
