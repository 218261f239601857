"""Small kernels' sources of one function, an empty cache folder, and compilers that are broken."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sgc.kernels.cpu import build

EXPORT = """
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int sgc_cpu_abi() { return 0; }
EXPORT int sgc_cpu_isa_best() { return 0; }
"""


def has_compiler() -> bool:
    """Whether the compiler that would be taken compiles something; CXX may name a broken one."""
    compiler = build._compiler()
    if compiler is None:
        return False
    command = [*compiler, "-std=c++20", "-x", "c++", "-fsyntax-only", "-"]
    return subprocess.run(command, input=b"int main() {}", capture_output=True).returncode == 0


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C++ compiler")
is_root = os.geteuid() == 0


def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and sources that are soon compiled."""
    tmp_path.chmod(0o700)
    sources = tmp_path / "native"
    sources.mkdir()
    (sources / "one.cpp").write_text(EXPORT)
    (sources / "one_avx2.cpp").write_text('#include "one.h"\n')
    (sources / "one.h").write_text("#pragma once\n")
    folder = tmp_path / "cache" / "kernels"
    monkeypatch.setattr(build, "SOURCES", sources)
    monkeypatch.setattr(build, "PREBUILT", tmp_path / "prebuilt")
    monkeypatch.setenv("SGC_KERNEL_CACHE", str(folder))
    for name in ("CXX", "SGC_CPU_KERNELS"):
        monkeypatch.delenv(name, raising=False)
    return folder


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def counting_compiler(folder: Path) -> tuple[str, Path]:
    """A compiler that notes each source it compiles."""
    log = folder / "log"
    real = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    note = f'case "$*" in *" -c "*) echo x >> {log};; esac'
    return script(folder / "compiler", f'{note}\nexec {real} "$@"'), log


def found() -> Path:
    result = build.find()
    assert result.path is not None, result.reason
    return result.path


def why_not() -> str:
    result = build.find()
    assert result.path is None
    assert "\n" not in result.reason
    return result.reason
