"""Compiles FlashInfer's modules ahead of the first model that needs them. FlashInfer keeps them in
its own cache (`FLASHINFER_WORKSPACE_BASE`, by default the home folder)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

# For most models; a window or a soft cap needs another module, compiled when a model has one.
USUAL = [(torch.bfloat16, 128), (torch.bfloat16, 64), (torch.float16, 128), (torch.bfloat16, 256)]


@dataclass(frozen=True, slots=True)
class Prepared:
    """problem: why the module is not there; "" if it is."""

    name: str
    took_s: float
    problem: str = ""


def prepare(backend: str = "fa2") -> Iterator[Prepared]:
    """Compiles the modules one by one; existing ones take no time."""
    from flashinfer.jit.attention import gen_batch_prefill_module
    from flashinfer.jit.cascade import gen_cascade_module

    specs: list[tuple[str, Any]] = [("merging", gen_cascade_module())]
    for dtype, head_dim in USUAL:
        name = f"attention, heads of {head_dim} in {str(dtype).removeprefix('torch.')}"
        specs.append((name, gen_batch_prefill_module(
            backend, dtype, dtype, dtype, torch.int32, head_dim, head_dim, 0, False, False, False
        )))  # fmt: skip
    for name, spec in specs:
        started_s, problem = time.perf_counter(), ""
        try:
            spec.build_and_load()
        except Exception as error:  # the compiler's errors, as text
            problem = str(error).strip()[-500:]
        yield Prepared(name, time.perf_counter() - started_s, problem)
