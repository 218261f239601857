"""How the native library is found, compiled and trusted; with small sources of one function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_cache import EXPORT, counting_compiler, found, is_root, needs_compiler, script, why_not

from sgc.kernels.cpu import build, compiling, library
from sgc.kernels.cpu.compiling import CompilerError


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


def reasons_of_processes(n: int, compiler: str) -> set[str]:
    """What so many say that start at once."""
    code = (
        "from pathlib import Path; from sgc.kernels.cpu import build;"
        f"build.SOURCES = Path({str(build.SOURCES)!r});"
        "found = build.find(); print(found.path or found.reason)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "CXX": compiler},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(n)
    ]
    return {process.communicate()[0].strip() for process in processes}


@pytest.mark.slow
@needs_compiler
def test_of_processes_that_start_at_once_one_compiles(cache, tmp_path) -> None:
    compiler, log = counting_compiler(tmp_path)
    (path,) = reasons_of_processes(3, compiler)
    assert [path] == [str(path) for path in cache.glob("*.so")]
    assert log.read_text().count("x") == 2


@pytest.mark.slow
def test_of_processes_that_start_at_once_one_fails_to_compile(cache, tmp_path) -> None:
    log = tmp_path / "log"
    fails = f"echo x >> {log}; sleep 0.5; echo 'error: boom'; exit 1"
    (reason,) = reasons_of_processes(2, script(tmp_path / "cc", fails))
    assert "error: boom" in reason
    assert log.read_text().count("x") <= 2


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
def test_what_is_compiled_for_a_package_is_found_there(cache, monkeypatch) -> None:
    shipped = build.prebuild()
    assert shipped.parent == build.PREBUILT
    assert not cache.exists()
    monkeypatch.setenv("PATH", "")
    assert found() == shipped
    with pytest.raises(CompilerError, match="no C\\+\\+ compiler"):
        build.prebuild()


@needs_compiler
def test_a_library_that_does_not_fit_is_not_used(cache, monkeypatch) -> None:
    def reason() -> str:
        library._load.cache_clear()
        assert library.find() is None
        return library.reason()

    found()
    try:
        assert "lacks a function" in reason()
        monkeypatch.setattr(library, "_FUNCTIONS", {})
        assert "version 0 of the interface" in reason()
    finally:
        library._load.cache_clear()


@pytest.mark.slow
@needs_compiler
def test_the_driver_of_slow_tests_knows_the_kernels(tmp_path) -> None:
    compiler = build._compiler()
    assert compiler is not None
    driver = Path(__file__).parent / "driver" / "driver.cpp"
    flags = ["-fsyntax-only", "-std=c++20", "-iquote", str(build.SOURCES)]
    subprocess.run([*compiler, *flags, str(driver)], check=True)
