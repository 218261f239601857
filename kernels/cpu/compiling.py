"""Compiles C++ sources into one shared library, side by side, in bounded time. `build.py` calls it;
it knows nothing of trusted folders or stored results.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from sgc.kernels.cpu.sets import Unit

TIMEOUT_S = 75.0  # so that an engine that waits for it still starts within its own limit
_STALE_S = 24 * 3600.0
_POLL_S = 0.02
_MAX_ERROR = 300


class CompilerError(Exception):
    """Why compiling failed, in plain English. is_lasting: the next start would fail too."""

    def __init__(self, message: str, is_lasting: bool = True) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting


def identity_of(compiler: Sequence[str]) -> str:
    """A text that changes with the compiler; does not run the compiler, which may hang."""
    return "\n".join(_identity(word) for word in compiler)


def _identity(word: str) -> str:
    found = shutil.which(word)
    if found is None:
        return word
    status = os.stat(found)
    return f"{os.path.realpath(found)} {status.st_size} {status.st_mtime_ns}"


@contextmanager
def compiled(
    units: Sequence[Unit], compiler: Sequence[str], folder: Path, end: float
) -> Iterator[Path]:
    """The library, in a folder within `folder` that is removed afterwards.

    Compiled parts are kept for a day, so that an interrupted build continues where it stopped.
    """
    _remove_stale(folder)
    parts = folder / "parts"
    parts.mkdir(mode=0o700, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
    before = set(parts.iterdir())
    try:
        yield _build(units, compiler, work, parts, end)
    except _LateError as error:
        error.is_lasting = before >= set(parts.iterdir())
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _build(
    units: Sequence[Unit], compiler: Sequence[str], work: Path, parts: Path, end: float
) -> Path:
    before = set(parts.iterdir())
    objects = _compile(units, compiler, work, parts, end)
    try:
        return _link(objects, compiler, work, end)
    except CompilerError:
        for part in objects:  # one may be damaged
            part.unlink(missing_ok=True)
        if before.isdisjoint(objects):
            raise
    return _link(_compile(units, compiler, work, parts, end), compiler, work, end)


def _compile(
    units: Sequence[Unit], compiler: Sequence[str], work: Path, parts: Path, end: float
) -> list[Path]:
    """Returns the object files."""
    common = _hash_of_headers(units[0].sources[0].parent) + identity_of(compiler).encode()
    with ThreadPoolExecutor(min(_n_cores(), 8)) as pool:
        return list(pool.map(lambda u: _object_of(u, common, compiler, work, parts, end), units))


def _object_of(
    unit: Unit, common: bytes, compiler: Sequence[str], work: Path, parts: Path, end: float
) -> Path:
    key = hashlib.sha256(common + repr((compiler, unit.flags)).encode())
    for source in unit.sources:
        key.update(source.read_bytes())
    part = parts / f"{unit.name}-{key.hexdigest()[:16]}.o"
    if not part.exists():
        source, built = work / f"{part.stem}.cpp", work / part.name
        source.write_text("".join(f'#include "{path.name}"\n' for path in unit.sources))
        where = ("-iquote", str(unit.sources[0].parent))
        _make(built, compiler, [*unit.flags, *where, "-c", str(source)], end)
        built.replace(part)
    return part


def _hash_of_headers(folder: Path) -> bytes:
    content = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.is_file() and path.suffix != ".cpp":
            content.update(path.name.encode() + b"\0" + path.read_bytes())
    return content.digest()


def _n_cores() -> int:
    """The cores that this process may use; each runs a compiler, which takes a quarter of a GB."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def _link(objects: Sequence[Path], compiler: Sequence[str], work: Path, end: float) -> Path:
    """Links the C++ library statically if possible: the process may have loaded an older one, whose
    functions must not replace ours."""
    built = work / "library.so"
    command = ["-shared", "-pthread", *map(str, objects)]
    if sys.platform == "linux":
        exports = work / "exports"
        exports.write_text("{ global: sgc_*; local: *; };\n")
        command += [f"-Wl,--version-script={exports}", "-Wl,--no-undefined"]
        with suppress(CompilerError):
            _make(built, compiler, [*command, "-static-libstdc++", "-static-libgcc"], end)
            return built
    _make(built, compiler, command, end)
    return built


def _make(built: Path, compiler: Sequence[str], arguments: list[str], end: float) -> None:
    _run(compiler, [*arguments, "-o", str(built)], end)
    if not built.is_file() or built.stat().st_size == 0:
        raise CompilerError(f"the compiler {compiler[0]} ends well, but writes nothing")


def _run(compiler: Sequence[str], arguments: list[str], end: float) -> None:
    left = end - time.monotonic()
    if left <= 0:
        raise _LateError(compiler)
    try:
        process = subprocess.Popen(
            [*compiler, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,  # so that its children can be ended with it
        )
    except OSError as error:
        raise CompilerError(f"the compiler {compiler[0]} does not start: {error}") from None
    with process:
        try:
            printed, _ = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            raise _LateError(compiler) from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    text = printed.decode(errors="replace")
    if process.returncode != 0:
        raise CompilerError(f"the compiler {compiler[0]} fails: {_first_error(text)}")


class _LateError(CompilerError):
    """There was not enough time. The next start continues where this one stopped."""

    def __init__(self, compiler: Sequence[str]) -> None:
        super().__init__(f"{compiler[0]} takes longer than {TIMEOUT_S:.0f} s", is_lasting=False)


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next(
        (line for line in lines if re.search(r"\berror\b|undefined", line)), "without a word"
    )
    return found[:_MAX_ERROR]


@contextmanager
def locked(path: Path, end: float) -> Iterator[None]:
    """A lock held by one process at a time. On a file system without locks, two processes may
    compile the same library, and the later one replaces the equal earlier one."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "wb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise CompilerError(
                        "another process compiles them, and takes long", is_lasting=False
                    ) from None
                time.sleep(_POLL_S)
                continue
            except OSError:
                pass
            yield
            return


def _remove_stale(folder: Path) -> None:
    """Removes what killed builds have left, and parts of old builds."""
    for path in (*folder.glob("build-*"), *folder.glob("parts/*.o")):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < _STALE_S:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
