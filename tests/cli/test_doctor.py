"""`sgc doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sgc.cli.main import cli
from sgc.cli.running.doctor_gpu import GpuFacts, gpu_findings, look_at_gpus, unprepared
from sgc.kernels.cpu import build, library


def found(*arguments: str) -> dict[str, dict[str, str]]:
    done = CliRunner().invoke(cli, ["doctor", "--json", *arguments])
    assert done.exit_code == 0, done.output
    return {line["what"]: line for line in json.loads(done.output)}


def test_it_tells_what_is_used_and_why() -> None:
    lines = found("--no-measure")
    assert lines["torch"]["found"].startswith("2.")
    kernels = library.find()
    if kernels is None:
        assert library.reason() in lines["our own kernels"]["found"]
    else:
        assert lines["our own kernels"]["found"].startswith(kernels.isa.name)
    assert "arithmetic" not in lines


def test_without_kernels_it_says_what_would_help(monkeypatch) -> None:
    monkeypatch.setattr(library, "find", lambda: None)
    monkeypatch.setattr(library, "reason", lambda: "SGC_CPU_KERNELS=off turns them off")
    monkeypatch.setenv("SGC_CPU_KERNELS", "off")
    line = found()["our own kernels"]
    assert "torch computes models" in line["found"]
    assert line["advice"] == "unset SGC_CPU_KERNELS"


def test_it_tries_again_to_compile_what_failed(monkeypatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    compiler, log = tmp_path / "cc", tmp_path / "log"
    compiler.write_text(f"#!/bin/sh\necho x >> {log}\necho 'error: boom'; exit 1\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("SGC_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SGC_CPU_KERNELS", raising=False)
    monkeypatch.setattr(build, "PREBUILT", tmp_path / "prebuilt")
    monkeypatch.setattr(library, "find", lambda: None)
    monkeypatch.setattr(library, "reason", lambda: build.find().reason)
    build.find()
    tried = log.read_text()
    assert "error: boom" in build.find().reason
    assert log.read_text() == tried
    assert "error: boom" in found("--no-measure")["our own kernels"]["found"]
    assert len(log.read_text()) > len(tried)


SEEN = {"torch": "2.11.0", "cuda": "13.0", "driver": "580.1", "names": ("NVIDIA H200 (139 GiB)",)}
TOOLS, MODULES = frozenset({"gcc", "nvcc", "ninja"}), frozenset({"triton", "flashinfer"})


@pytest.mark.parametrize(
    ("facts", "line", "says", "advice"),
    [
        (GpuFacts(False), "gpu", "none", ""),
        (GpuFacts(True), "gpu", "no torch", "sgc[gpu]"),
        (GpuFacts(True, torch="2.13.0+cpu"), "gpu", "without CUDA", "torch with CUDA"),
        (GpuFacts(True, torch="2.11.0", cuda="13.0"), "gpu", "does not see", "driver for CUDA 13"),
        (GpuFacts(True, **SEEN), "kernels in triton", "torch attends", "sgc[gpu]"),
        (GpuFacts(True, **SEEN, modules=MODULES), "kernels in triton", "no C compiler", "gcc"),
        (GpuFacts(True, **SEEN, modules=MODULES, tools=frozenset({"gcc"})),
         "kernels of flashinfer", "without nvcc and ninja", "CUDA toolkit"),
        (GpuFacts(True, **SEEN, modules=MODULES, tools=TOOLS),
         "kernels of flashinfer", "first needs them", "--prepare"),
        (GpuFacts(True, **SEEN, modules=frozenset({"triton"}), tools=TOOLS),
         "kernels of flashinfer", "not installed", "sgc[gpu]"),
    ],
)  # fmt: skip
def test_what_a_gpu_lacks_is_told(monkeypatch, facts, line, says, advice) -> None:
    monkeypatch.delenv("CC", raising=False)
    (found,) = [one for one in gpu_findings(facts) if one.what == line]
    assert says in found.found
    assert advice in found.advice if advice else not found.advice


@pytest.mark.parametrize(
    ("facts", "says", "advice"),
    [
        (GpuFacts(False), "no GPU", "where the engine will run"),
        (GpuFacts(True, torch="2.13.0+cpu"), "torch sees no GPU", "torch with CUDA"),
        (GpuFacts(True, **SEEN), "flashinfer is not installed", "sgc[gpu]"),
        (GpuFacts(True, **SEEN, modules=MODULES, tools=frozenset({"nvcc"})), "no ninja", "CUDA"),
    ],
)  # fmt: skip
def test_prepare_says_why_it_compiles_nothing(facts, says, advice) -> None:
    found = unprepared(facts)
    assert found is not None
    assert says in found.found
    assert advice in found.advice


def test_prepare_compiles_where_all_is_there() -> None:
    assert unprepared(GpuFacts(True, **SEEN, modules=MODULES, tools=TOOLS)) is None


@pytest.mark.skipif(look_at_gpus().has_device, reason="compiles for minutes")
def test_prepare_without_a_gpu_has_a_line_of_its_own() -> None:
    assert "nothing was compiled" in found("--no-measure", "--prepare")["--prepare"]["found"]
