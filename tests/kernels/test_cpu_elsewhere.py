"""The kernels by other compilers, under sanitizers and on another architecture."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from sgc.kernels.cpu import build, compiling, sets
from sgc.kernels.cpu.trust import own_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

HERE = Path(__file__).parent
# Products, the pool, attention, pages and weights in eight bits, and whole programs.
TESTED = [
    HERE / "test_cpu_products.py",
    HERE / "test_cpu_threads.py",
    *(HERE.parent / "engine" / "core" / "model" / f"test_{name}.py"
      for name in ("cpu_attention", "cpu_pages_of_int8", "eight_bits", "deterministic",
                   "self_check")),
]  # fmt: skip
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")
BUILD_S = 900.0
# Without them the tests would skip themselves.
FOUND = "from sgc.kernels.cpu import library; assert library.find() is not None, library.reason()"
DRIVEN = "right, instruction set 0\n"


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"there is no {' and no '.join(missing)}")


def run(
    compiler: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    **more: str,
) -> None:
    """Builds all sets, and runs the tests of kernels in a process of their own."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("CXX", shlex.join(compiler))
    monkeypatch.setenv("SGC_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SGC_KERNEL_SETS", "all")
    store = build._store(build._hash_of_sources(), list(compiler))
    own_folder(store.folder)
    units = [
        dataclasses.replace(unit, flags=(*unit.flags, level))
        for unit in sets.units(sorted(build.SOURCES.glob("*.cpp")), sets.everything())
    ]
    end = time.monotonic() + BUILD_S
    with compiling.compiled(units, compiler, store.folder, end) as built:
        path = store.keep(built)
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-m", "not slow", "--timeout=600"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}
    subprocess.run([sys.executable, "-P", "-c", FOUND], env=environment, check=True)
    done = subprocess.run(
        [*command, *map(str, TESTED)], env=environment, cwd=HERE.parent.parent,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    assert list(path.parent.glob("*.so")) == [path], "it was built again"


def drive(compiler: Sequence[str], tmp_path: Path) -> Path:
    """Builds the driver with what every processor of the architecture has."""
    units = sets.units(sorted(build.SOURCES.glob("*.cpp")), (sets.PLAIN,))
    end = time.monotonic() + BUILD_S
    objects = compiling._compile(units, compiler, tmp_path, own_folder(tmp_path / "parts"), end)
    driver, program = HERE / "driver" / "driver.cpp", tmp_path / "driver"
    subprocess.run(
        [*compiler, "-O1", "-std=c++20", "-pthread", "-iquote", str(build.SOURCES), str(driver),
         *map(str, objects), "-o", str(program)], check=True,
    )  # fmt: skip
    return program


def output_of(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


@needs("g++")
def test_memory_is_used_as_it_may_be(tmp_path, monkeypatch) -> None:
    """The sanitizers of addresses and undefined behaviour; not of leaks, for Python leaks."""
    libraries = [output_of("g++", f"-print-file-name={name}").strip()
                 for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]  # fmt: skip
    run(
        ["g++", *SANITIZED], tmp_path, monkeypatch, "-O1",
        LD_PRELOAD=" ".join(libraries),
        ASAN_OPTIONS="detect_leaks=0:detect_odr_violation=0",
    )  # fmt: skip


@needs("clang++")
def test_clang(tmp_path, monkeypatch) -> None:
    run(["clang++"], tmp_path, monkeypatch, "-O3")


@needs("g++")
def test_threads_do_not_race(tmp_path) -> None:
    tmp_path.chmod(0o700)
    assert output_of(drive(["g++", "-fsanitize=thread", "-g1"], tmp_path)) == DRIVEN


@needs("aarch64-linux-gnu-g++", "qemu-aarch64")
def test_neon(tmp_path, monkeypatch) -> None:
    tmp_path.chmod(0o700)
    program = drive(["aarch64-linux-gnu-g++", "-static"], tmp_path)
    assert output_of("qemu-aarch64", program) == DRIVEN


@needs("g++")
def test_nothing_warns(tmp_path) -> None:
    """With warnings that a user's compiler is not asked for."""
    tmp_path.chmod(0o700)
    # The common sources are included by one, as headers are; gcc 12 warns of its own headers.
    warnings = (
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-subobject-linkage",
        "-Wno-uninitialized",
        "-Wno-maybe-uninitialized",
    )
    units = sets.units(sorted(build.SOURCES.glob("*.cpp")), sets.everything())
    end = time.monotonic() + BUILD_S
    with compiling.compiled(units, ["g++", *warnings], tmp_path, end) as built:
        assert built.is_file()
