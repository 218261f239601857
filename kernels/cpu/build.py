"""Finds the native kernels' library: one that came with the package, one compiled before, or one
compiled now from `native/*.cpp` into a cache folder of the user's.

It needs no torch and never raises: if there is no library, it says why in one sentence, and the
engine runs on torch. `library.py` calls it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sgc.kernels.cpu import compiling, sets
from sgc.kernels.cpu.compiling import CompilerError, compiled, locked
from sgc.kernels.cpu.sets import InstructionSet
from sgc.kernels.cpu.stored import Store
from sgc.kernels.cpu.trust import NotTrustedError, own_folder, trusted

_log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
SOURCES = _HERE / "native"
PREBUILT = _HERE / "prebuilt"
# The process that starts an engine passes on lines with these words.
COMPILING = "compiling kernels"
NO_KERNELS = "no kernels of our own"
_ELSEWHERE = "name a folder of yours in SGC_KERNEL_CACHE"
_RETRY = "`sgc doctor` tries again"
_PREBUILD_S = 600.0


@dataclass(frozen=True, slots=True)
class Found:
    """Where the library is, or why there is none. is_told: whether an engine's user is told."""

    path: Path | None
    reason: str
    is_told: bool = True


class _NoLibraryError(Exception):
    """Why there is no library, in plain English."""


def find(broken: Path | None = None) -> Found:
    """Finds or compiles the library. broken: a library that does not load, to be replaced."""
    if os.environ.get("SGC_CPU_KERNELS", "").strip().lower() == "off":
        return Found(None, "SGC_CPU_KERNELS=off turns them off", is_told=False)
    try:
        return _find(broken)
    except (_NoLibraryError, CompilerError, NotTrustedError) as error:
        return Found(None, str(error))
    except OSError as error:
        what = f"the library cannot be stored or read: {error}; {_ELSEWHERE}"
        return Found(None, what)
    except Exception as error:  # whatever is wrong, an engine starts without the library
        what = f"looking for it failed: {type(error).__name__}: {error}"
        return Found(None, what)


def _find(broken: Path | None) -> Found:
    if sys.platform not in ("linux", "darwin"):
        raise _NoLibraryError(f"they are not built on {sys.platform}")
    sources = _hash_of_sources()
    for shipped in PREBUILT.glob(f"sgc-{sources}-*.so"):
        if shipped != broken:
            return Found(shipped, "it came with the package")
    compiler = _compiler()
    if compiler is None:
        return _without_compiler(sources, broken)
    store = _store(sources, compiler)
    for known in (store, _store(sources, compiler, sets.everything())):
        if path := known.library(but=broken):
            return Found(path, "compiled before")
    _check_failure(store)
    return Found(_compile(store, compiler, broken), f"compiled by {compiler[0]}")


def note_failure(message: str) -> None:
    """Notes that a just compiled library does not load, so that not every start compiles it."""
    if compiler := _compiler():
        _store(_hash_of_sources(), compiler).note_failure(message)


def forget_failure() -> None:
    """Forgets failures, so that `find` compiles again. Never raises."""
    try:
        if compiler := _compiler():
            _store(_hash_of_sources(), compiler).forget_failure()
    except (OSError, NotTrustedError, _NoLibraryError) as error:
        _log.debug("no failure is forgotten: %s", error)  # `find` then says what is wrong


def prebuild() -> Path:
    """Compiles a library of every instruction set into `PREBUILT`, for a package to bring along.

    `find` takes it wherever the sources are the same. Raises `CompilerError`.
    """
    compiler = _compiler()
    if compiler is None:
        raise CompilerError("there is no C++ compiler: no g++ and no clang++ on the PATH")
    PREBUILT.mkdir(exist_ok=True)
    units = sets.units(sorted(SOURCES.glob("*.cpp")), sets.everything())
    path = PREBUILT / f"sgc-{_hash_of_sources()}-{sets.label(sets.everything())}.so"
    with tempfile.TemporaryDirectory() as work:
        end = time.monotonic() + _PREBUILD_S
        with compiling.compiled(units, compiler, Path(work), end) as built:
            shutil.move(built, path)
    return path


def cache_folder() -> Path:
    if chosen := os.environ.get("SGC_KERNEL_CACHE"):
        return Path(chosen).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "sgc" / "kernels"
    try:
        return Path.home() / ".cache" / "sgc" / "kernels"
    except RuntimeError:
        raise _NoLibraryError("there is no home folder to keep the library in") from None


def _store(
    sources: str, compiler: list[str], built_in: Sequence[InstructionSet] | None = None
) -> Store:
    label = sets.label(sets.chosen() if built_in is None else built_in)
    kind = _short_hash(shlex.join(compiler) + compiling.identity_of(compiler))
    return Store(trusted(cache_folder()), f"sgc-{sources}-{label}-{kind}")


def _compile(store: Store, compiler: list[str], broken: Path | None) -> Path:
    """Compiles the library; a second process waits for the first."""
    own_folder(store.folder)
    end = time.monotonic() + compiling.TIMEOUT_S
    with locked(store.folder / "lock", end):
        if path := store.library(but=broken):
            return path
        _check_failure(store)
        _log.warning("%s for this machine, once; it takes some 15 s of CPU", COMPILING)
        units = sets.units(sorted(SOURCES.glob("*.cpp")), sets.chosen())
        try:
            with compiled(units, compiler, store.folder, end) as built:
                return store.keep(built)
        except CompilerError as error:
            if error.is_lasting:
                store.note_failure(str(error))
                raise CompilerError(f"{error} ({_RETRY})") from None
            raise


def _check_failure(store: Store) -> None:
    if failure := store.failure():
        raise CompilerError(f"{failure} ({_RETRY})")


def _without_compiler(sources: str, broken: Path | None) -> Found:
    """A library that another compiler built, if there is one."""
    folder = trusted(cache_folder())
    for built_in in (sets.chosen(), sets.everything()):
        store = Store(folder, f"sgc-{sources}-{sets.label(built_in)}-*")
        if path := store.library(but=broken):
            return Found(path, "compiled before")
    chosen = os.environ.get("CXX")
    if chosen:
        raise _NoLibraryError(f"the compiler that CXX names, {chosen}, is not there")
    raise _NoLibraryError("there is no C++ compiler: no g++ and no clang++ on the PATH")


def _compiler() -> list[str] | None:
    """The command that compiles C++; None if there is none."""
    if chosen := os.environ.get("CXX"):
        words = shlex.split(chosen)
        return words if words and shutil.which(words[0]) else None
    return next(([name] for name in ("g++", "clang++", "c++") if shutil.which(name)), None)


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
    sources = [file for file in files if file.suffix == ".cpp"]
    for unit in sets.units(sources, sets.everything()):
        yield shlex.join([unit.name, *unit.flags]).encode()
    for file in files:
        yield file.name.encode()
        yield file.read_bytes()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
