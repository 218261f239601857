"""The file beside a job's log that says which requests were submitted, in which batch.

A batch is written down before it is submitted, with the names of its requests, and its id as soon
as it is known; so whenever the process dies, the next one knows what may be at the provider.
Reading executes nothing. The lock of the job's log is the lock of this file.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgc.errors import LogUnwritable, RunLogError
from sgc.runtime.executor.backends.providers.batches.contract import Json, Key

VERSION = 1


@dataclass(slots=True)
class Noted:
    """A batch. ids: of its requests, in order; left: those whose outcome was not taken yet in this
    process; file, batch: ids at the provider, "" while unknown. was_over: an earlier process has
    seen its end. is_doubtful: it may have been made although no answer came. is_read: this process
    has read its results."""

    key: Key
    ids: tuple[str, ...]
    left: dict[str, None]
    file: str = ""
    batch: str = ""
    was_over: bool = False
    is_over: bool = False
    is_doubtful: bool = False
    is_read: bool = False

    @property
    def number(self) -> int:
        return self.key.number


@dataclass(slots=True)
class _Read:
    job: str = ""
    scope: str = ""
    batches: dict[int, Noted] = field(default_factory=dict)
    last: int = 0


class Journal:
    """An open journal. batches: those whose results may still be needed, by number; where: the
    batch of each request that may be asked again."""

    def __init__(self, path: Path, scope: str) -> None:
        """scope: what else replies depend on, such as the server's address.

        Raises RunLogError for a file that is no journal, or of another scope."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RunLogError(
                f"cannot open {path}: {error.strerror}",
                hint="a job by batch reads and writes this file beside its log",
            ) from error
        try:
            read = self._read()
            if not read.job:
                read.job = secrets.token_hex(8)
                self._append({"kind": "begin", "version": VERSION, "job": read.job, "scope": scope})
            elif read.scope != scope:
                raise RunLogError(
                    f"{path} tells of batches at {read.scope!r}, and this run asks {scope!r}",
                    hint="go on with the engine that the job began with, or begin another log",
                )
        except BaseException:
            self.close()
            raise
        self.job, self.batches, self._last = read.job, read.batches, read.last
        self.where = {each: noted for noted in self.batches.values() for each in noted.left}

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # -- writing ------------------------------------------------------------------------

    def begin(self, ids: Iterable[str]) -> Noted:
        """Notes a batch that is about to be submitted."""
        self._last += 1
        found = tuple(ids)
        noted = _noted(Key(self.job, self._last, time.time(), len(found)), found)
        self._append(
            {"kind": "intent", "number": noted.number, "at": noted.key.since, "ids": found}
        )
        self.batches[noted.number] = noted
        self.where.update(dict.fromkeys(found, noted))
        return noted

    def uploaded(self, noted: Noted, file: str) -> None:
        noted.file = file
        self._append({"kind": "file", "number": noted.number, "file": file})

    def submitted(self, noted: Noted, batch: str) -> None:
        noted.batch = batch
        self._append({"kind": "submitted", "number": noted.number, "batch": batch})

    def over(self, noted: Noted, word: str) -> None:
        noted.is_over = True
        self._append({"kind": "over", "number": noted.number, "word": word})

    def dropped(self, noted: Noted, why: str) -> None:
        """Notes that a batch is not at the provider, or is not needed any more."""
        self._append({"kind": "dropped", "number": noted.number, "why": why})
        del self.batches[noted.number]
        for each in noted.left:
            if self.where.get(each) is noted:
                del self.where[each]

    def take(self, noted: Noted, id: str) -> None:
        """Notes, in memory, that the outcome of a request was handed out or given up."""
        noted.left.pop(id, None)
        if self.where.get(id) is noted:
            del self.where[id]

    def _append(self, record: Json) -> None:
        line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
        size = os.fstat(self._fd).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
            os.fsync(self._fd)
        except OSError as error:
            with suppress(OSError):  # half a line would hide those after it
                os.ftruncate(self._fd, size)
            raise LogUnwritable(f"cannot write {self.path}: {error.strerror}") from error

    # -- reading ------------------------------------------------------------------------

    def _read(self) -> _Read:
        found, at = _Read(), 0
        with open(self._fd, "rb", closefd=False) as file:
            file.seek(0)
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break  # cut off by a crash
                try:
                    _take(found, json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    raise RunLogError(
                        f"{self.path}:{number}: the line is no record of a job's batches",
                        hint="restore the file; without it, what is at the provider is submitted, "
                        "and paid for, again",
                    ) from error
                at += len(line)
        os.ftruncate(self._fd, at)
        return found


def _noted(key: Key, ids: tuple[str, ...]) -> Noted:
    return Noted(key, ids, dict.fromkeys(ids))


def _take(found: _Read, record: Any) -> None:
    kind = record["kind"]
    if kind == "begin":
        if record["version"] != VERSION:
            raise RunLogError(
                f"a file of batches has version {record['version']}, this sgc reads {VERSION}",
                hint="go on with the sgc that began the job",
            )
        found.job, found.scope = str(record["job"]), str(record["scope"])
        return
    number = int(record["number"])
    if kind == "intent":
        ids = tuple(str(each) for each in record["ids"])
        found.batches[number] = _noted(Key(found.job, number, float(record["at"]), len(ids)), ids)
        found.last = max(found.last, number)
    elif kind == "dropped":
        del found.batches[number]
    elif kind == "file":
        found.batches[number].file = str(record["file"])
    elif kind == "submitted":
        found.batches[number].batch = str(record["batch"])
    elif kind == "over":
        found.batches[number].was_over = found.batches[number].is_over = True
    else:
        raise ValueError(kind)
