"""What the cache keeps: libraries that are whole, and why there is none."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from pathlib import Path

import pytest
from kernel_cache import EXPORT, counting_compiler, found, needs_compiler, script, why_not

from sgc.kernels.cpu import build, compiling, library, stored


def n_compiled(log: Path) -> int:
    return log.read_text().count("x") if log.exists() else 0


@pytest.fixture
def log(cache, monkeypatch, tmp_path) -> Path:
    """What a working compiler notes of its work."""
    compiler, log = counting_compiler(tmp_path)
    monkeypatch.setenv("CXX", compiler)
    return log


@needs_compiler
@pytest.mark.parametrize("content", [b"", b"\x7fELF", None], ids=["empty", "short", "changed"])
def test_a_damaged_library_is_built_again(log, content) -> None:
    path = found()
    whole = path.read_bytes()
    path.write_bytes(bytes([*whole[:-1], whole[-1] ^ 1]) if content is None else content)
    again = found()
    assert again.read_bytes() == whole
    assert list(path.parent.glob("*.so")) == [again]


@needs_compiler
def test_a_mapped_library_is_never_written(cache) -> None:
    path = found()
    mapped = ctypes.CDLL(str(path))
    inode = path.stat().st_ino
    path.rename(path.with_name(path.name.replace(".so", "0.so")))  # a wrong hash
    assert found().stat().st_ino != inode
    assert mapped.sgc_cpu_abi() == 0


@needs_compiler
def test_what_does_not_load_is_built_again_once(log, monkeypatch) -> None:
    """As one of another architecture, whose hash is right."""
    monkeypatch.setattr(library, "_FUNCTIONS", {})
    monkeypatch.setattr(library, "ABI", 0)
    path = found()
    alien = b"\x7fELF of another machine"
    path.write_bytes(alien)
    path.rename(path.with_name(f"{path.name.rsplit('-', 1)[0]}-{stored._hash_of(path)}.so"))
    loaded, _ = library._loaded()
    assert loaded is not None
    assert loaded.path == path
    assert path.read_bytes() != alien


@needs_compiler
def test_what_never_loads_is_not_built_at_every_start(log, monkeypatch) -> None:
    def never(path: str) -> ctypes.CDLL:
        raise OSError("failed to map segment from shared object")

    monkeypatch.setattr(ctypes, "CDLL", never)
    for _ in range(3):
        loaded, found = library._loaded()
        assert loaded is None
        assert "failed to map" in found.reason
    assert n_compiled(log) == 2


@needs_compiler
def test_a_damaged_part_is_compiled_again(log) -> None:
    path = found()
    path.unlink()
    for part in path.parent.glob("parts/*.o"):
        part.write_bytes(b"no object")
    assert found() == path


@needs_compiler
def test_a_cache_that_only_lets_read_is_used(cache, monkeypatch) -> None:
    """As one that was made by root, and mounted for others. Root itself writes everywhere, so that
    modes of folders would not show it."""

    def read_only(path, flags, *more) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return really(path, flags, *more)

    path, really = found(), os.open
    monkeypatch.setattr(os, "open", read_only)
    assert found() == path
    path.unlink()
    reason = why_not()
    assert "Read-only file system" in reason
    assert "name a folder of yours in SGC_KERNEL_CACHE" in reason


def test_what_failed_is_not_tried_at_every_start(cache, monkeypatch, tmp_path) -> None:
    tries = tmp_path / "tries"
    text = f'echo x >> {tries}; echo "x.cpp:1: error: boom"; exit 1'
    compiler = script(tmp_path / "cc", text)
    monkeypatch.setenv("CXX", compiler)
    first = why_not()
    n = n_compiled(tries)
    assert n > 0
    assert "error: boom" in first
    assert "`sgc doctor` tries again" in first
    assert why_not() == first
    assert n_compiled(tries) == n
    (marker,) = cache.glob("*.failed")
    assert marker.stat().st_mode & 0o777 == 0o600

    marker.chmod(0o666)
    assert "others can write the file" in why_not()
    marker.chmod(0o600)

    past = time.time() - stored.FAILURE_S - 1
    os.utime(marker, (past, past))
    why_not()
    assert n_compiled(tries) > n, "a day later it is tried again"


@needs_compiler
def test_a_failure_is_of_its_sources_and_its_compiler(cache, monkeypatch, tmp_path) -> None:
    broken = script(tmp_path / "cc", "exit 1")
    monkeypatch.setenv("CXX", broken)
    why_not()
    Path(broken).write_text('#!/bin/sh\nexec g++ "$@"\n')  # another takes its place
    found()
    (build.SOURCES / "one.cpp").write_text("no C++\n")
    assert "error" in why_not()
    (build.SOURCES / "one.cpp").write_text(EXPORT)
    found()


@needs_compiler
def test_the_doctor_tries_again(cache, monkeypatch, tmp_path) -> None:
    """As when a missing header was installed: the compiler is the same."""
    (tmp_path / "fails").touch()
    compiler = script(tmp_path / "cc", f'[ -e {tmp_path}/fails ] && exit 1\nexec g++ "$@"')
    monkeypatch.setenv("CXX", compiler)
    why_not()
    (tmp_path / "fails").unlink()
    why_not()
    build.forget_failure()
    found()
    assert not list(cache.glob("*.failed"))


def test_a_message_is_short_and_one_line(cache, monkeypatch, tmp_path) -> None:
    printed = "error: " + "long " * 10_000
    monkeypatch.setenv("CXX", script(tmp_path / "cc", f"echo '{printed}'; exit 1"))
    for _ in range(2):
        assert len(why_not()) < 600


def test_a_compiler_that_writes_nothing(cache, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CXX", script(tmp_path / "cc", "exit 0"))
    assert "writes nothing" in why_not()
    assert list(cache.glob("*.failed"))


def test_a_compiler_that_hangs_is_waited_for_once(cache, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CXX", script(tmp_path / "cc", "sleep 100"))
    monkeypatch.setattr(compiling, "TIMEOUT_S", 0.3)
    why_not()
    start = time.monotonic()
    assert "takes longer" in why_not()
    assert time.monotonic() - start < 0.3


@pytest.mark.slow
@needs_compiler
def test_a_slow_compiler_goes_on_at_the_next_start(cache, monkeypatch, tmp_path) -> None:
    """It had compiled something: that is no failure."""
    slow = 'case "$*" in *one_avx2*.cpp*) [ -e %s ] || sleep 100;; esac\nexec g++ "$@"'
    monkeypatch.setenv("CXX", script(tmp_path / "cc", slow % (tmp_path / "fast")))
    monkeypatch.setattr(compiling, "TIMEOUT_S", 2.0)
    assert "takes longer" in why_not()
    assert not list(cache.glob("*.failed"))
    (tmp_path / "fast").touch()
    found()


@needs_compiler
def test_of_old_versions_few_are_kept(cache) -> None:
    path = found()
    for i in range(20):
        old = cache / f"sgc-{i:016x}-abc-def.so"
        old.touch()
        os.utime(old, (1000 + i, 1000 + i))
    path.unlink()
    assert found() == path
    left = sorted(p.name for p in cache.glob("*.so") if p != path)
    assert left == [f"sgc-{i:016x}-abc-def.so" for i in range(12, 20)]
