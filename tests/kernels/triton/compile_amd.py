"""Compiles all kernels for AMD's gfx942, with no GPU here: run as a program, in a process without
Triton's interpreter. Prints a line of JSON for each."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from triton.backends.compiler import GPUTarget

sys.path.append(str(Path(__file__).parent))

import compile_attention
import compile_rows

GFX942 = GPUTarget("hip", "gfx942", 64)


def main() -> None:
    warnings.simplefilter("ignore")
    for row in compile_attention.rows():
        binary = compile_attention.compiled(row, GFX942)
        print(json.dumps({"kernel": row.name, "shared": binary.metadata.shared}), flush=True)
    for name, *how in compile_rows.rows():
        binary = compile_rows.compiled(*how, GFX942)
        print(json.dumps({"kernel": name, "shared": binary.metadata.shared}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
