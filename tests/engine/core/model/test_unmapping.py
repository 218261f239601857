"""Packed weights are given back where they lie in a file, and stay as they are elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sgc.runtime.engine.model.decoders.unmapping import unmap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="by Linux's /proc")
MB = 2**20


def in_memory_kb(tensor: torch.Tensor) -> int:
    """What is in memory of the mapping that a tensor lies in."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    for at, line in enumerate(lines):
        span = line.split(maxsplit=1)[0]
        first, dash, last = span.partition("-")
        if dash and int(first, 16) <= tensor.data_ptr() < int(last, 16):
            return next(int(each.split()[1]) for each in lines[at:] if each.startswith("Rss:"))
    raise AssertionError("it lies nowhere")


def test_a_file_is_unmapped_and_reads_the_same_again(tmp_path: Path) -> None:
    save_file({"a": torch.arange(4 * MB), "b": torch.ones(MB)}, tmp_path / "file", {"format": "pt"})
    with safe_open(tmp_path / "file", framework="pt") as file:
        weights = {key: file.get_tensor(key) for key in ("a", "b")}
    total = int(weights["a"].sum())
    assert int(weights["b"].sum()) == MB
    before = in_memory_kb(weights["a"])
    unmap([weights["a"]])
    assert before - in_memory_kb(weights["a"]) > 30_000, "of 32 MB"
    assert int(weights["a"].sum()) == total


def test_other_memory_stays_as_it_is() -> None:
    weight = torch.ones(MB)
    unmap([weight, weight[: MB // 2], torch.empty(0)])
    assert int(weight.sum()) == MB
