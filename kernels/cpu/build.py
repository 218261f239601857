"""Finds the native kernels' library: one that came with the package, one compiled before, or one
compiled now from `native/*.cpp` into a cache folder of the user's.

It needs no torch and never raises: where there is no library it says why in one sentence, and
the engine runs on torch. `library.py` calls it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sgc.kernels.cpu.compiling import CompilerError, compile_into, flags_of, version_of

_log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
SOURCES = _HERE / "native"
COMPILING = "compiling kernels"  # whoever starts an engine passes this line on
PREBUILT = _HERE / "prebuilt"


@dataclass(frozen=True, slots=True)
class Found:
    """Where the library is, or why there is none."""

    path: Path | None
    reason: str


class _NoLibraryError(Exception):
    """Why there is no library, in plain English."""


def find() -> Found:
    if os.environ.get("SGC_CPU_KERNELS", "").strip().lower() == "off":
        return Found(None, "SGC_CPU_KERNELS=off turns them off")
    try:
        return _find()
    except (_NoLibraryError, CompilerError) as error:
        return Found(None, str(error))
    except OSError as error:
        return Found(None, f"the library cannot be stored or read: {error}")
    except Exception as error:  # an engine starts without it, whatever is wrong
        return Found(None, f"looking for it failed: {type(error).__name__}: {error}")


def _find() -> Found:
    if sys.platform not in ("linux", "darwin"):
        raise _NoLibraryError(f"they are not built on {sys.platform}")
    sources = _hash_of_sources()
    for path in PREBUILT.glob(f"sgc-{sources}-*.so"):
        return Found(path, "it came with the package")
    folder = cache_folder()
    _check_parents(folder)
    compiler = _compiler()
    if compiler is None:
        return _without_compiler(folder, sources)
    kind = _short_hash(shlex.join(compiler) + version_of(compiler))
    path = folder / f"sgc-{sources}-{kind}.so"
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owned(folder, "folder")
        _log.warning("%s for this machine, once; it takes some 30 s of CPU", COMPILING)
        compile_into(path, sorted(SOURCES.glob("*.cpp")), compiler)
        _check_owned(path, "file")
        return Found(path, f"compiled by {compiler[0]}")
    return _cached(path)


def cache_folder() -> Path:
    if chosen := os.environ.get("SGC_KERNEL_CACHE"):
        return Path(chosen).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "sgc" / "kernels"
    try:
        return Path.home() / ".cache" / "sgc" / "kernels"
    except RuntimeError:
        raise _NoLibraryError("there is no home folder to keep the library in") from None


def _without_compiler(folder: Path, sources: str) -> Found:
    """What another compiler left is as good."""
    for path in sorted(folder.glob(f"sgc-{sources}-*.so")):
        return _cached(path)
    chosen = os.environ.get("CXX")
    if chosen:
        raise _NoLibraryError(f"the compiler that CXX names, {chosen}, is not there")
    raise _NoLibraryError("there is no C++ compiler: no g++ and no clang++ on the PATH")


def _cached(path: Path) -> Found:
    _check_owned(path.parent, "folder")
    _check_owned(path, "file")
    return Found(path, "compiled before")


def _compiler() -> list[str] | None:
    """The command that compiles C++; None: there is none."""
    if chosen := os.environ.get("CXX"):
        words = shlex.split(chosen)
        return words if words and shutil.which(words[0]) else None
    return next(([name] for name in ("g++", "clang++", "c++") if shutil.which(name)), None)


def _check_owned(path: Path, what: str) -> None:
    """Code is loaded only from what nobody else can write."""
    status = path.lstat()
    if status.st_uid != os.geteuid():
        raise _NoLibraryError(f"the {what} {path} belongs to another user")
    if status.st_mode & 0o022:
        raise _NoLibraryError(f"others can write the {what} {path}")
    if not (path.is_dir() if what == "folder" else path.is_file()) or path.is_symlink():
        raise _NoLibraryError(f"{path} is no {what}")


def _check_parents(folder: Path) -> None:
    """Whoever can write a folder above can put another in the folder's place, unless the sticky bit
    forbids it, as in /tmp."""
    for parent in folder.parents:
        if not parent.exists():
            continue
        status = parent.stat()
        if status.st_uid not in (0, os.geteuid()):
            raise _NoLibraryError(f"the folder {parent} belongs to another user")
        if status.st_mode & 0o1002 == 0o0002:
            raise _NoLibraryError(f"others can write the folder {parent}")


def _hash_of_sources() -> str:
    files = sorted(path for path in SOURCES.glob("*") if path.is_file())
    if not files:
        raise _NoLibraryError("their sources are not installed")
    content = hashlib.sha256()
    for part in _hashed(files):
        content.update(len(part).to_bytes(8, "little") + part)
    return content.hexdigest()[:16]


def _hashed(files: list[Path]) -> Iterator[bytes]:
    yield f"{sys.platform} {platform.machine()}".encode()
    for file in files:
        yield shlex.join([file.name, *flags_of(file)]).encode()
        yield file.read_bytes()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
