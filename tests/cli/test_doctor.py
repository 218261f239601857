"""`sgc doctor`."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from sgc.cli.main import cli
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
