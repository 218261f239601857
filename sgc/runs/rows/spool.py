"""Keeps rows that can be read only once, from stdin or a pipe, in a file."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sgc.errors import UsageError

_temporary: list[str] = []
_locked: list[int] = []


@dataclass(frozen=True, slots=True)
class Spool:
    """Where a job keeps rows. is_new: the job has not begun, so an existing file is another's."""

    path: Path
    is_new: bool = False

    def of_part(self, number: int) -> Spool:
        """The spool of one of several files, from 0."""
        name = f"{self.path.name}.{number}" if number else self.path.name
        return Spool(self.path.with_name(name), self.is_new)


def spooled(opened: Callable[[], BinaryIO], spool: Spool | None) -> Path:
    """A copy of input that can be read only once, readable by its owner only, and locked until
    `release`. A complete spool is used as it is: the job goes on with its rows."""
    path = None if spool is None else spool.path
    try:
        if spool is None:
            return _unnamed(opened)
        assert path is not None
        if path.exists():
            _lock(path)
            if not spool.is_new:
                return path
        begun = path.with_name(path.name + ".begun")
        with open(os.dup(_lock(begun)), "wb") as file:
            file.truncate(0)
            shutil.copyfileobj(opened(), file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())
        begun.rename(path)
    except OSError as error:
        raise UsageError(f"the rows cannot be kept in {path}: {error.strerror}") from error
    return path


def release() -> None:
    """Removes temporary files and unlocks the others, when no more rows are read."""
    while _temporary:
        Path(_temporary.pop()).unlink(missing_ok=True)
    while _locked:
        os.close(_locked.pop())


def _unnamed(opened: Callable[[], BinaryIO]) -> Path:
    with tempfile.NamedTemporaryFile(prefix="sgc-rows-", delete=False) as unnamed:
        _temporary.append(unnamed.name)
        shutil.copyfileobj(opened(), unnamed, 1 << 20)
    return Path(unnamed.name)


def _lock(path: Path) -> int:
    """Opens and locks a file. Raises UsageError if another job has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_same = path.exists() and os.path.samestat(os.fstat(fd), path.stat())
        if not is_same:  # another job has renamed it just now
            raise BlockingIOError
    except BlockingIOError as error:
        os.close(fd)
        raise UsageError(
            f"the rows in {path} are those of another job that is under way",
            hint="wait for it, or name another log",
        ) from error
    _locked.append(fd)
    return fd
