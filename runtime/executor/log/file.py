"""An append-only file of JSON lines that survives a crash of the process that writes it.

The first line names the format; each other line is a record, identified by its kind and key. Memory
holds only the place of each record in the file. An incomplete last line, as after a crash, is
removed; any other line that is not a record is an error. A job's log forgets rows that are done, so
that its memory does not grow with them.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from sgc.errors import LogUnwritable, RunLogError, closest_file
from sgc.runtime.executor.interface.log import Json, Key

FORMAT_VERSION = 1  # of a run's log
MAX_RECORDS = 5_000_000
MAX_LINE_BYTES = 256 * 1024 * 1024

# The kinds of records of a run's log, and the fields that are a record's key.
KEYS: Mapping[str, tuple[str, ...]] = {
    "program": (),
    "backend": (),
    "job": ("out",),
    "row": ("row",),
    "generate": ("row", "path", "ordinal", "number"),
    "score": ("row", "path", "ordinal", "number"),
    "commit": ("row", "path", "ordinal", "number"),
    "intent": ("row", "path", "ordinal"),
    "failure": ("row", "path", "ordinal"),
    "tool": ("row", "path", "ordinal"),
}
# The key fields that are texts; the others are ints.
_TEXTS = frozenset({"row", "path", "fingerprint", "out"})
# The beginning of a row's record, which tells its row without parsing.
_OF_ROW = re.compile(rb'\{"kind":"[a-z]+","row":("(?:[^"\\]|\\.)*"),')


@dataclass(frozen=True, slots=True)
class Form:
    """A file format. name: for the first line; what: its name in errors; keys: the key fields of
    each kind of record.
    """

    name: str
    version: int
    what: str
    keys: Mapping[str, tuple[str, ...]]

    @property
    def line(self) -> bytes:
        return f'{{"{self.name}":{self.version}}}\n'.encode("ascii")


RUN_LOG = Form("sgc_run_log", FORMAT_VERSION, "a run's log", KEYS)


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class Watch(Protocol):
    """Is called with the records of a log while it is read."""

    def job(self, record: Json) -> None:
        """Called with a job that wrote the log."""
        ...

    def is_done(self, row: str) -> bool:
        """Whether a row's records are not needed any more; they are then skipped."""
        ...

    def line(self, line: bytes) -> None:
        """Any record, as it was written."""
        ...


class LogFile:
    """An open file of records; any thread may use it."""

    def __init__(self, path: str, fd: int, is_read_only: bool, form: Form = RUN_LOG) -> None:
        self.path = path
        self._form = form
        self.is_read_only = is_read_only
        self._fd = fd
        self._lock = threading.RLock()
        # Offset and length of each record in bytes, by its row; None for records of no row.
        self._places: dict[str | None, dict[Key, tuple[int, int]]] = {}
        self._n_places = 0
        self._size = 0

    @staticmethod
    def open(path: str, form: Form = RUN_LOG, watch: Watch | None = None) -> LogFile:
        """Opens a file to continue it, or creates one that only its owner may read."""
        fd = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(fd, path)
            file = LogFile(path, fd, is_read_only=False, form=form)
            file._load(watch)
            os.ftruncate(fd, file._size)
            if not file._size:
                file._append(form.line)
                _sync_folder(path)
        except BaseException:
            os.close(fd)
            raise
        return file

    @staticmethod
    def read(path: str, form: Form = RUN_LOG) -> LogFile:
        """Opens a file for reading."""
        fd = _open(path, os.O_RDONLY)
        try:
            file = LogFile(path, fd, is_read_only=True, form=form)
            file._load()
        except BaseException:
            os.close(fd)
            raise
        return file

    @staticmethod
    def temporary() -> LogFile:
        """A file without a name, deleted when it is closed."""
        with tempfile.TemporaryFile() as unnamed:
            file = LogFile("a temporary log", os.dup(unnamed.fileno()), is_read_only=False)
        file._append(RUN_LOG.line)
        return file

    def close(self) -> None:
        """Closes the file; closing it again does nothing."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    # -- reading --------------------------------------------------------------------------

    def find(self, key: Key) -> Json | None:
        """The last record with a key; None if there is none."""
        with self._lock:
            place = self._places.get(self._row_of(key), {}).get(key)
            if place is None:
                return None
            line = os.pread(self._open_fd(), place[1], place[0])
        return _parsed(line, self.path)

    def places(self) -> Iterator[Key]:
        """The keys of all records, in the order of the records."""
        with self._lock:
            every = [item for places in self._places.values() for item in places.items()]
        return (key for key, _ in sorted(every, key=lambda item: item[1]))

    def forget(self, row: str) -> None:
        """Forgets where the records of a row are; they stay in the file."""
        with self._lock:
            self._n_places -= len(self._places.pop(row, ()))

    def _load(self, watch: Watch | None = None) -> None:
        with open(os.dup(self._fd), "rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                where = f"{self.path}:{number}"
                if number == 1:
                    _check_format(line, where, self._form)
                if not line.endswith(b"\n"):
                    if len(line) == MAX_LINE_BYTES:
                        raise RunLogError(f"{where}: the line is too long")
                    return
                if number > 1 and not _is_done(line, watch):
                    record = _parsed(line, where)
                    self._keep(record, self._size, len(line), where)
                    if watch is not None and record["kind"] == "job":
                        watch.job(record)
                self._size += len(line)

    def _keep(self, record: Json, offset: int, n_bytes: int, where: str) -> None:
        """Remembers where a record is."""
        kind = record.get("kind")
        if not isinstance(kind, str) or kind not in self._form.keys:
            raise RunLogError(f"{where}: there is no record of the kind {kind!r}")
        names = self._form.keys[kind]
        # Logs from before maps existed do not name the mapped call of a tool call.
        told = {"path": "", **record} if kind in ("intent", "failure", "tool") else record
        parts = tuple([told.get(name) for name in names])
        wanted = [str if name in _TEXTS else int for name in names]
        if [*map(type, parts)] != wanted:
            raise RunLogError(f"{where}: a record of the kind {kind!r} needs {', '.join(names)}")
        key = (kind, *parts)
        places = self._places.setdefault(self._row_of(key), {})
        self._n_places += key not in places
        if self._n_places > MAX_RECORDS:
            raise RunLogError(f"{self.path} has more than {MAX_RECORDS} records")
        places[key] = (offset, n_bytes)

    def _row_of(self, key: Key) -> str | None:
        """The row of a record's key; None for a record of no row."""
        return key[1] if self._form.keys.get(key[0], ())[:1] == ("row",) else None

    # -- writing --------------------------------------------------------------------------

    def append(self, record: Json) -> None:
        """Adds a record, which survives a crash of the process once this returns."""
        try:
            text = _encode(record)
        except (ValueError, TypeError, RecursionError) as error:
            raise RunLogError(f"the reply cannot be written to {self.path}: {error}") from error
        line = text.encode("ascii") + b"\n"
        if len(line) >= MAX_LINE_BYTES:
            raise RunLogError(f"the reply is too long for {self.path}: {len(line)} bytes")
        with self._lock:
            offset = self._size
            self._append(line)
            self._keep(record, offset, len(line), self.path)

    def _append(self, line: bytes) -> None:
        if self.is_read_only:
            raise RunLogError(f"{self.path} is open for reading: nothing is written to it")
        fd, at = self._open_fd(), self._size
        end = at + len(line)
        try:
            while at < end:
                at += os.pwrite(fd, line[len(line) - (end - at) :], at)
        except OSError as error:
            with suppress(OSError):  # half a line would make the next line unreadable
                os.ftruncate(fd, self._size)
            raise LogUnwritable(f"cannot write {self.path}: {error.strerror}") from error
        self._size = end

    def sync(self) -> None:
        """Waits until all records would survive a crash of the machine."""
        try:
            os.fsync(self._open_fd())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # the file system has no fsync
                raise LogUnwritable(f"cannot write {self.path}: {error.strerror}") from error

    def _open_fd(self) -> int:
        if self._fd < 0:
            raise RunLogError(f"the log {self.path} is closed")
        return self._fd


def _is_done(line: bytes, watch: Watch | None) -> bool:
    """Whether a record is of a row that is done."""
    if watch is None:
        return False
    watch.line(line)
    found = _OF_ROW.match(line)
    if found is None:
        return False
    quoted = found[1]
    row = json.loads(quoted) if b"\\" in quoted else quoted[1:-1].decode("ascii", "replace")
    return watch.is_done(row)


def _open(path: str, flags: int) -> int:
    """Opens a regular file; only the owner may read a new one."""
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        meant = closest_file(path) if isinstance(error, FileNotFoundError) else ""
        raise RunLogError(
            f"cannot open the log or recording {path}: {error.strerror}{meant}"
        ) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise RunLogError(f"cannot open the log or recording {path}: it is not a regular file")
    return fd


def _lock(fd: int, path: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RunLogError(f"the log {path} is being written by another run") from error


def _sync_folder(path: str) -> None:
    """Syncs the folder: without that, a crash of the machine may lose a new file."""
    with suppress(OSError):
        fd = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _check_format(line: bytes, where: str, form: Form) -> None:
    if form.line.startswith(line):  # complete, or cut short by a crash
        return
    raise RunLogError(
        f"{where}: expected {form.what} of format {form.version}, found {line[:16]!r}",
        hint="name another file; the log of another version of sgc is read by that version only",
    )


def _parsed(line: bytes, where: str) -> Json:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RunLogError(f"{where}: the line is not a record of a log: {error}") from error
    if not isinstance(record, dict):
        raise RunLogError(f"{where}: the line is not a record of a log")
    return record
