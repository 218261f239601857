"""Makes a model folder of a GGUF file, in a child process, and keeps it for the next start.

The folders are in `$XDG_CACHE_HOME/sgc/gguf`, for their owner alone, named by the file's path,
size and time. The server calls it before it starts the step process, so it imports no library.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sgc.errors import LoadError
from sgc.runtime.engine.process import child

WALL_LIMIT_S = 300.0
KEPT = 32  # folders; the least recently used is removed first
_VERSION = 1  # changed whenever folders are written differently
_STALE_S = 3600.0  # an unfinished folder this old was left by a process that was killed
_MODULE = "sgc.runtime.engine.model.checkpoints.gguf.unpack"
_MAX_ANSWER_BYTES = 100_000


def unpacked(paths: Sequence[Path]) -> Path:
    """The model folder of a file, or of a split's parts; raises `LoadError`."""
    for package in ("gguf", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise LoadError(
                f"{paths[0]} is a GGUF file, and the package {package} is not installed to read it",
                hint="pip install 'sgc[gguf]'",
            )
    paths = [path.absolute() for path in paths]
    cache = _cache()
    found = cache / _key(paths)
    try:
        if not found.is_dir():
            _make(paths, cache, found)
        os.utime(found)
    except OSError as error:
        raise LoadError(
            f"what {paths[0]} says beside its weights cannot be kept in {cache}: {error.strerror}",
            hint="make room there, or name another folder in XDG_CACHE_HOME",
        ) from error
    return found


def _make(paths: Sequence[Path], cache: Path, target: Path) -> None:
    _remove_old(cache)
    made = cache / f".{secrets.token_hex(8)}"
    made.mkdir(mode=0o700)
    try:
        _ask([str(made), *map(str, paths)], paths[0])
        with contextlib.suppress(OSError):  # another process has made it meanwhile
            made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _ask(arguments: Sequence[str], path: Path) -> None:
    """Runs the child; raises the error that it found."""
    try:
        done = subprocess.run(
            [*child.python_module(_MODULE), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WALL_LIMIT_S,
        )
        answer: Any = json.loads(done.stdout[:_MAX_ANSWER_BYTES])
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise LoadError(
            f"{path} cannot be used: reading its vocabulary exceeded the limit on time or memory",
            hint="serve the model's folder of safetensors",
        ) from error
    if "error" in answer:
        raise LoadError(answer["error"], hint=answer["hint"])


def _key(paths: Sequence[Path]) -> str:
    facts: list[Any] = [_VERSION, version("transformers")]
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise LoadError(f"cannot read {path}: {error.strerror}") from error
        facts.append([str(path), status.st_size, status.st_mtime_ns, status.st_ino])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    found = (Path(base) if base else Path.home() / ".cache") / "sgc" / "gguf"
    try:
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(found, os.W_OK) and found.stat().st_uid == os.geteuid():
            return found
    except OSError:
        pass  # a home that cannot be written: the folder is this process's
    found = Path(tempfile.mkdtemp(prefix="sgc-gguf-"))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


def _remove_old(cache: Path) -> None:
    """Removes old folders, to make room for one more."""
    with contextlib.suppress(OSError):
        each = [(path.stat().st_mtime, path) for path in cache.iterdir() if path.is_dir()]
        whole = sorted(item for item in each if not item[1].name.startswith("."))
        stale = [item for item in each if item[1].name.startswith(".")
                 and item[0] < time.time() - _STALE_S]  # fmt: skip
        for _, path in [*whole[: max(0, len(whole) - KEPT + 1)], *stale]:
            shutil.rmtree(path, ignore_errors=True)
