"""A folder of chunks: files named by their keys, for their owner alone, bounded in bytes. Several
engines may share it: files appear whole, by renaming, and each engine checks now and then for files
that others wrote. The least recently used files are removed first.

This module knows nothing of the files' contents, and imports no library: `sgc kv` uses it too.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sgc.errors import UsageError

_SUFFIX = ".kv.safetensors"
_NAME = re.compile(r"[0-9a-f]{64}" + re.escape(_SUFFIX))
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.kv\.tmp")
_STALE_S = 3600.0  # a temporary file this old was left by an engine that was killed
_TICK_NS = 10**8
KEPT_SHARE = 0.95  # of the bound: files are removed down to this, not one by one


@dataclass(frozen=True, slots=True)
class Contents:
    """used_from, used_to: when its files were last used, seconds since the epoch."""

    n_files: int
    n_bytes: int
    used_from: float = 0.0
    used_to: float = 0.0


@dataclass(slots=True)
class _File:
    n_bytes: int
    used_ns: int


class Damaged(Exception):
    """A file that does not hold what its name says."""


class KVFolder:
    """max_bytes: of all files, of whatever model. Threads may share an object."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.max_bytes = path, max_bytes
        self._files: dict[bytes, _File] = {}
        self._lock = threading.Lock()
        self._seen_ns = -1  # the folder's time of change when it was last read
        self.n_bytes = 0
        self.refresh()

    def __contains__(self, key: bytes) -> bool:
        return key in self._files

    def read(self, key: bytes, n_bytes: int) -> bytes | None:
        """A file's content; None if it is gone. Raises OSError, and `Damaged` for a wrong size."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path(key), flags)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size != n_bytes:
                raise Damaged(f"it has {status.st_size} bytes, not {n_bytes}")
            content = file.read(n_bytes)
        if len(content) != n_bytes:
            raise Damaged(f"it was cut to {len(content)} bytes")
        return content

    def write(self, key: bytes, content: Sequence[memoryview]) -> None:
        """Adds a file, and removes others until all fit; raises OSError. content: in pieces."""
        n_bytes = sum(map(len, content))
        self._make_room(n_bytes)
        temporary = self.path / f".{secrets.token_hex(8)}.kv.tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600), "wb", buffering=0) as file:
                for piece in content:
                    while piece:
                        piece = piece[file.write(piece) :]
            temporary.rename(self._path(key))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._note(key, _File(n_bytes, time.time_ns()))

    def touch(self, keys: Sequence[bytes]) -> None:
        """Marks files as used now, in order: a chunk outlives the chunks that continue it."""
        now_ns = time.time_ns()
        for i, key in enumerate(keys):
            used_ns = now_ns - 1000 * i
            with contextlib.suppress(OSError):  # it was removed: its pages are computed again
                os.utime(self._path(key), ns=(used_ns, used_ns), follow_symlinks=False)
                with self._lock:
                    if key in self._files:
                        self._files[key].used_ns = used_ns

    def remove(self, key: bytes) -> None:
        with contextlib.suppress(OSError):
            self._path(key).unlink(missing_ok=True)
        self._forget(key)

    def refresh(self) -> None:
        """Reads what other engines wrote and removed, if the folder changed; raises OSError."""
        changed_ns = self.path.stat().st_mtime_ns
        if changed_ns == self._seen_ns:
            return
        found: set[bytes] = set()
        for name in os.listdir(self.path):
            if _NAME.fullmatch(name):
                found.add(bytes.fromhex(name.removesuffix(_SUFFIX)))
            elif _TEMPORARY.fullmatch(name):
                self._remove_stale(self.path / name)
        for key in self._files.keys() - found:
            self._forget(key)
        for key in found - self._files.keys():
            with contextlib.suppress(FileNotFoundError):
                self._note(key, _file(self._path(key)))
        # A later change in the same tick of the system's clock would go unnoticed.
        self._seen_ns = changed_ns if time.time_ns() - changed_ns > _TICK_NS else -1

    def _make_room(self, n_bytes: int) -> None:
        if n_bytes > self.max_bytes:
            raise OSError(f"a file of {n_bytes} bytes; {self.max_bytes} are allowed in all")
        if self.n_bytes + n_bytes <= self.max_bytes:
            return
        most = max(0, int(self.max_bytes * KEPT_SHARE) - n_bytes)
        self._remove_oldest(most, keeps_touched=True)
        self._remove_oldest(self.max_bytes - n_bytes, keeps_touched=False)

    def _remove_oldest(self, most_bytes: int, keeps_touched: bool) -> None:
        """keeps_touched: whether to keep files that another engine has used since."""
        for key, file in sorted(self._files.items(), key=lambda item: item[1].used_ns):
            if self.n_bytes <= most_bytes:
                return
            with contextlib.suppress(FileNotFoundError):
                now = _file(self._path(key))
                if keeps_touched and now.used_ns > file.used_ns:
                    self._note(key, now)
                    continue
            self.remove(key)

    def _note(self, key: bytes, file: _File) -> None:
        with self._lock:
            before = self._files.get(key)
            self.n_bytes += file.n_bytes - (0 if before is None else before.n_bytes)
            self._files[key] = file

    def _forget(self, key: bytes) -> None:
        with self._lock:
            file = self._files.pop(key, None)
            if file is not None:
                self.n_bytes -= file.n_bytes

    def _remove_stale(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.lstat().st_mtime > _STALE_S:
                path.unlink()

    def _path(self, key: bytes) -> Path:
        return self.path / f"{key.hex()}{_SUFFIX}"


def _file(path: Path) -> _File:
    status = path.lstat()
    return _File(status.st_size, status.st_mtime_ns)


def own_folder(path: Path) -> Path:
    """Makes a folder that only its owner can use, unless it exists; raises `UsageError`."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_own(path)
        if not os.access(path, os.W_OK | os.X_OK):
            _refuse(f"{path} cannot be written", "name another folder")
    except OSError as error:
        _refuse(f"{path} cannot be made or read: {error.strerror}", "name another folder")
    return path


def check_own(path: Path) -> None:
    """Raises `UsageError` unless the path is a folder that only its owner can use."""
    if not path.is_dir():
        _refuse(
            f"{path} is no folder", "name a folder of K and V, as given to `sgc serve --kv-dir`"
        )
    status = path.stat()
    if status.st_uid != os.geteuid():
        _refuse(f"{path} belongs to another user", "name a folder of your own")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        _refuse(
            f"others can use {path} (mode {mode:04o}): prompts can be read from the K and V in it",
            f"name another folder, which is made, or chmod 700 {path} if it is for this alone",
        )


def contents(path: Path) -> Contents:
    """What a folder holds, read anew; raises `UsageError` if it is none."""
    check_own(path)
    files: list[_File] = []
    for name in os.listdir(path):
        if _NAME.fullmatch(name):
            with contextlib.suppress(FileNotFoundError):
                files.append(_file(path / name))
    if not files:
        return Contents(0, 0)
    used = [file.used_ns / 1e9 for file in files]
    return Contents(len(files), sum(file.n_bytes for file in files), min(used), max(used))


def clear(path: Path) -> Contents:
    """Removes every file of ours, and no other; returns what was removed."""
    found = contents(path)
    for name in os.listdir(path):
        if _NAME.fullmatch(name) or _TEMPORARY.fullmatch(name):
            (path / name).unlink(missing_ok=True)
    return found


def _refuse(message: str, hint: str) -> NoReturn:
    raise UsageError(message, hint=hint)
