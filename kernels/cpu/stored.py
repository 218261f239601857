"""What the cache folder keeps for each source, compiler and set of flags: a library, whose name
ends in the hash of its content, or the reason why there is none.

A library is never changed: a new one takes its name, and processes that run the old one keep it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sgc.kernels.cpu.trust import check_own

FAILURE_S = 24 * 3600.0  # after this, a failed compilation is tried again
_MAX_MESSAGE = 500
_N_LIBRARIES = 8  # how long results of other versions and compilers are kept
_N_HEX = 16


@dataclass(frozen=True, slots=True)
class Store:
    """folder: `own_folder` of trust.py, or `trusted` and missing. name: of source, compiler, flags;
    it may hold a `*`."""

    folder: Path
    name: str

    def library(self, but: Path | None = None) -> Path | None:
        """An undamaged library; raises `NotTrustedError` if others can change it."""
        return next((path for path in self._libraries() if path != but and _is_whole(path)), None)

    def keep(self, built: Path) -> Path:
        """Stores a library that was just built in a folder beside it."""
        built.chmod(0o700)
        path = self.folder / f"{self.name}-{_hash_of(built)}.so"
        self._place(built, path)
        for old in self._libraries():
            if old != path:
                old.unlink(missing_ok=True)
        self._remove_old()
        self.forget_failure()
        return path

    def failure(self) -> str | None:
        """Why the last compilation failed, if that was not long ago."""
        marker = self._marker
        try:
            check_own(marker)
            age = time.time() - marker.stat().st_mtime
            with marker.open(encoding="utf-8", errors="replace") as file:
                return file.read(_MAX_MESSAGE) if abs(age) < FAILURE_S else None
        except FileNotFoundError:
            return None

    def note_failure(self, message: str) -> None:
        written = self.folder / f"{self.name}.{os.getpid()}"
        with suppress(OSError):  # then compilation is tried again
            written.write_text(" ".join(message.split())[:_MAX_MESSAGE], encoding="utf-8")
            written.chmod(0o600)
            self._place(written, self._marker)

    def forget_failure(self) -> None:
        with suppress(OSError):
            self._marker.unlink(missing_ok=True)

    @property
    def _marker(self) -> Path:
        return self.folder / f"{self.name}.failed"

    def _libraries(self) -> Iterator[Path]:
        return iter(sorted(self.folder.glob(f"{self.name}-*.so")))

    def _place(self, written: Path, path: Path) -> None:
        """Syncs before it renames, so that a crash leaves no name without content."""
        _sync(written)
        written.replace(path)
        _sync(path.parent)

    def _remove_old(self) -> None:
        """Removes old results of other sources and compilers."""
        with suppress(OSError):
            others = [p for p in self.folder.glob("sgc-*.so") if not p.match(f"{self.name}-*")]
            others.sort(key=lambda path: path.stat().st_mtime)
            for path in others[:-_N_LIBRARIES]:
                path.unlink(missing_ok=True)
            for marker in self.folder.glob("sgc-*.failed"):
                if abs(time.time() - marker.stat().st_mtime) > FAILURE_S:
                    marker.unlink(missing_ok=True)


def _is_whole(path: Path) -> bool:
    check_own(path)
    return path.is_file() and path.stem.endswith("-" + _hash_of(path))


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_N_HEX]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
