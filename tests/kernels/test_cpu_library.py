"""How the native library is found, compiled and trusted; with small sources of one function."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sgc.kernels.cpu import build, compiling, library

EXPORT = 'extern "C" __attribute__((visibility("default"))) int sgc_cpu_abi() { return 0; }\n'

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="there is no C++ compiler"
)
is_root = os.geteuid() == 0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


@needs_compiler
def test_it_is_compiled_once_for_its_owner_alone(cache, monkeypatch, tmp_path) -> None:
    compiler, log = counting_compiler(tmp_path)
    monkeypatch.setenv("CXX", compiler)
    path = found()
    assert path.parent == cache
    assert path.stat().st_mode & 0o777 == 0o700
    assert cache.stat().st_mode & 0o777 == 0o700
    assert found() == path
    assert log.read_text().count("x") == 2
    assert not list(cache.glob("build-*"))


@needs_compiler
def test_changed_sources_are_another_library(cache, monkeypatch, tmp_path) -> None:
    compiler, log = counting_compiler(tmp_path)
    monkeypatch.setenv("CXX", compiler)
    first = found()
    (build.SOURCES / "one.cpp").write_text(EXPORT + "// more\n")
    assert found() != first
    assert log.read_text().count("x") == 3, "what did not change was compiled again"
    (build.SOURCES / "one.h").write_text("#pragma once\n// more\n")
    found()
    assert log.read_text().count("x") == 5, "a header is part of every source"


@needs_compiler
def test_without_a_compiler_what_was_compiled_before_is_used(cache, monkeypatch) -> None:
    path = found()
    monkeypatch.setenv("PATH", "")
    assert found() == path


def test_no_compiler(cache, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "no C++ compiler" in why_not()
    monkeypatch.setenv("CXX", "no-such-compiler -O9")
    assert "CXX names" in why_not()
    assert not cache.exists()


def test_a_compiler_that_fails(cache, monkeypatch, tmp_path) -> None:
    fails = 'case "$*" in *version*) echo 1;; *) echo "x.cpp:1: error: boom"; exit 1;; esac'
    monkeypatch.setenv("CXX", script(tmp_path / "cc", fails))
    assert "error: boom" in why_not()
    monkeypatch.setenv("CXX", script(tmp_path / "cc2", "exit 3"))
    assert "fails" in why_not()
    assert not list(cache.glob("*.so"))


def test_a_compiler_that_does_not_start(cache, monkeypatch, tmp_path) -> None:
    broken = tmp_path / "cc"
    broken.write_bytes(b"\x7fELF and no more")
    broken.chmod(0o700)
    monkeypatch.setenv("CXX", str(broken))
    assert "does not start" in why_not()


def test_a_compiler_that_hangs(cache, monkeypatch, tmp_path) -> None:
    hangs = 'case "$*" in *version*) echo 1;; *) sleep 100;; esac'
    monkeypatch.setenv("CXX", script(tmp_path / "cc", hangs))
    monkeypatch.setattr(compiling, "TIMEOUT_S", 0.3)
    assert "takes longer" in why_not()
    assert not list(cache.glob("build-*"))


@needs_compiler
def test_a_source_that_is_wrong(cache) -> None:
    (build.SOURCES / "one.cpp").write_text("int f() { return nothing; }\n")
    assert "error" in why_not()


@needs_compiler
def test_a_cache_that_cannot_be_written(cache, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SGC_KERNEL_CACHE", str(build.SOURCES / "one.cpp" / "kernels"))
    assert "cannot be stored" in why_not()
    monkeypatch.setenv("SGC_KERNEL_CACHE", "/proc/kernels")
    assert "cannot be stored" in why_not()


@needs_compiler
@pytest.mark.skipif(is_root, reason="root writes everywhere")
def test_a_folder_that_only_lets_read(cache) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    assert "cannot be stored" in why_not()


def test_no_home(cache, monkeypatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("SGC_KERNEL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert "no home" in why_not()


def test_where_the_cache_is(cache, monkeypatch, tmp_path) -> None:
    assert build.cache_folder() == cache
    monkeypatch.delenv("SGC_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / "sgc" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert build.cache_folder() == Path.home() / ".cache" / "sgc" / "kernels"


@needs_compiler
def test_two_processes_at_once(cache, monkeypatch, tmp_path) -> None:
    compiler, log = counting_compiler(tmp_path)
    code = (
        "from pathlib import Path; from sgc.kernels.cpu import build;"
        f"build.SOURCES = Path({str(build.SOURCES)!r}); print(build.find().path)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "CXX": compiler},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    paths = {process.communicate()[0].strip() for process in processes}
    assert paths == {str(path) for path in cache.glob("*.so")}
    assert len(paths) == 1
    assert log.read_text().count("x") == 2


@needs_compiler
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_refused(cache, mode) -> None:
    path = found()
    cache.chmod(mode)
    assert "others can write the folder" in why_not()
    path.unlink()
    assert "others can write the folder" in why_not()
    assert not path.exists()


@needs_compiler
def test_a_file_that_others_can_write_is_refused(cache) -> None:
    found().chmod(0o720)
    assert "others can write the file" in why_not()


@needs_compiler
def test_a_folder_above_that_others_can_write_is_refused(cache) -> None:
    found()
    cache.parent.chmod(0o777)
    assert "others can write the folder" in why_not()
    cache.parent.chmod(0o1777)  # as /tmp: nobody takes another's folder away
    found()


@needs_compiler
def test_what_belongs_to_another_is_refused(cache, monkeypatch) -> None:
    found()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert "belongs to another user" in why_not()


@needs_compiler
def test_a_link_in_place_of_the_library_is_refused(cache, tmp_path) -> None:
    path = found()
    path.rename(tmp_path / "elsewhere.so")
    path.symlink_to(tmp_path / "elsewhere.so")
    assert build.find().path is None


def test_the_switch_that_turns_it_off(cache, monkeypatch) -> None:
    monkeypatch.setenv("SGC_CPU_KERNELS", "off")
    assert "SGC_CPU_KERNELS=off" in why_not()
    assert not cache.exists()


@needs_compiler
def test_what_came_with_the_package_is_taken_first(cache, monkeypatch) -> None:
    path = found()
    build.PREBUILT.mkdir()
    shipped = build.PREBUILT / path.name
    path.rename(shipped)
    monkeypatch.setenv("PATH", "")
    assert found() == shipped
    (build.SOURCES / "one.cpp").write_text(EXPORT + "// newer than what was shipped\n")
    assert "no C++ compiler" in why_not()


@needs_compiler
def test_a_library_that_does_not_fit_is_not_used(cache, monkeypatch) -> None:
    def reason() -> str:
        library._load.cache_clear()
        assert library.find() is None
        return library.reason()

    path = found()
    try:
        path.write_bytes(b"no library")
        assert "does not load" in reason()
        path.unlink()
        assert "does not load" in reason()  # it lacks functions
        monkeypatch.setattr(library, "_FUNCTIONS", {})
        assert "version 0 of the interface" in reason()
    finally:
        library._load.cache_clear()


def test_each_source_has_the_flags_of_its_name() -> None:
    names = ("x", "x_avx2", "x_avx512", "x_avx512_bf16", "x_amx_bf16", "x_plain")
    flags = [compiling.flags_of(Path(f"{name}.cpp")) for name in names]
    if compiling.platform.machine() != "x86_64":
        assert len(set(flags)) == 1
        return
    assert flags[0] == flags[5]
    assert "-mavx2" in flags[1]
    assert "-mavx512f" not in flags[1]
    assert "-mavx512bw" in flags[2]
    assert "-mavx512bf16" not in flags[2]
    assert "-mavx512bf16" in flags[3]
    assert "-mamx-bf16" in flags[4]
