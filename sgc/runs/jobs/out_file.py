"""An append-only file of results: each record is whole or not there, whatever ends the process.

Rows in the file are done: a job that goes on reads the file, and neither loses nor repeats a row.
The file is locked while a job writes it.
"""

from __future__ import annotations

import fcntl
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from sgc.errors import OutputError
from sgc.runs.jobs.records import Done, Record

_CHUNK = 1 << 20


class OutFile(ABC):
    """A file of results that is open for writing, and locked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = _open(path)
        self._size = os.fstat(self._fd).st_size

    @abstractmethod
    def _records(self) -> Iterator[Done]:
        """The whole records from the start; raises OutputError for what no job has written."""

    @abstractmethod
    def _bytes(self, record: Record) -> bytes: ...

    @property
    def is_empty(self) -> bool:
        return not self._size

    def done(self, is_retried: Callable[[str], bool] | None = None) -> Iterator[Done]:
        """The rows that are done. Cuts off the unfinished last record of a killed process, and
        removes records whose error `is_retried`.
        """
        end, has_retried = 0, False
        kept: list[tuple[int, int]] = []  # ranges of bytes that stay
        for each in self._records():
            end = each.end
            if is_retried is not None and each.error and is_retried(each.error):
                has_retried = True
                continue
            if is_retried is not None:
                if kept and kept[-1][1] == each.start:
                    kept[-1] = kept[-1][0], each.end
                else:
                    kept.append((each.start, each.end))
            yield each
        if end < self._size:
            self._cut(max(end, self._first()))
        if has_retried:
            self._rewrite([(0, self._first()), *kept])

    def write(self, record: Record) -> None:
        """Adds a record. Raises OutputError, with the file as it was, if it cannot be written."""
        self._append(self._bytes(record))

    def empty(self) -> None:
        """Removes all that is in the file."""
        self._cut(0)

    def sync(self) -> None:
        with suppress(OSError):  # a pipe or a device has nothing to sync
            os.fsync(self._fd)

    def finish(self) -> None:
        """Called when all rows are done."""
        self.sync()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> OutFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first(self) -> int:
        """Where the first record begins."""
        return 0

    def _append(self, data: bytes) -> None:
        at, end = self._size, self._size + len(data)
        try:
            while at < end:
                at += os.pwrite(self._fd, data[len(data) - (end - at) :], at)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise self._unwritable(error) from error
        self._size = end

    def _cut(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise self._unwritable(error) from error
        self._size = size

    def _rewrite(self, ranges: list[tuple[int, int]]) -> None:
        """Replaces the file by these parts of it, at once or not at all. Its mode stays, and so
        does a link to it."""
        target = self.path.resolve()
        new = target.with_name(target.name + ".rewritten")
        try:
            new.unlink(missing_ok=True)
            fd = _open(new)
            try:
                os.fchmod(fd, stat.S_IMODE(os.fstat(self._fd).st_mode))
                for start, end in ranges:
                    while start < end:
                        data = os.pread(self._fd, min(_CHUNK, end - start), start)
                        start += os.write(fd, data)  # less than all, if the disk is nearly full
                os.fsync(fd)
                os.replace(new, target)
            except BaseException:
                os.close(fd)
                new.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self._unwritable(error) from error
        os.close(self._fd)
        self._fd, self._size = fd, os.fstat(fd).st_size

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(
            f"cannot write {self.path}: {error.strerror}",
            hint="what was written is whole; make room, and run the same command again",
        )

    def _foreign(self, line: int, why: str) -> OutputError:
        return OutputError(
            f"{self.path}:{line}: this is no row that a job has written: {why}",
            hint="name another --out, or replace this one with --force and a new log",
        )


def _open(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise OutputError(
            f"{path} is being written by another job", hint="wait for it, or name another --out"
        ) from error
    return fd
