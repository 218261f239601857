"""A run's log: its requests and their replies, so that no request need be made again.

Its records (`log/file.py`) are the program and the backend, each row's arguments, and every request
and tool call with its reply, by row and place in the program. Interpreted and compiled runs name
places alike, so either can continue the other's log. Records survive a crash of the process; those
around a call with an effect survive a crash of the machine too. The log holds prompts, replies and
arguments: only its owner may read it. One process writes it at a time. Reading a log executes
nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from sgc.errors import (
    GuardError,
    LogOptionsError,
    NonDeterministicProgram,
    RunLogError,
    UsageError,
)
from sgc.ir.graph import Guard
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.log import Header, Json, Key
from sgc.runtime.executor.interface.plain import plain_copy
from sgc.runtime.executor.log.file import LogFile, Watch
from sgc.runtime.executor.log.records import (
    capabilities_json,
    capabilities_of,
    fingerprint,
    instance_of,
)
from sgc.runtime.executor.run.options import RunOptions

ON_UNKNOWN = ("stop", "retry", "skip")
_ANEW = "begin a new log (a job: and another --out)"
_HEADER = {"name": str, "fingerprint": str, "seed": int, "options": dict}


def header_of(program: str, guards: Iterable[Guard], options: RunOptions) -> Header:
    """Returns the header of a run's log, which is the same for compiled and interpreted runs."""
    sources = tuple(sorted((guard.name, guard.value) for guard in guards if guard.kind == "source"))
    return Header(program, _fingerprint(sources), options.seed, plain_copy(options.given()))


@lru_cache  # each row of a batch needs it
def _fingerprint(sources: tuple[tuple[str, str], ...]) -> str:
    return fingerprint(*sources)


class RunLog:
    """An open log; rows of a batch share it.

    on_unknown: what to do about a call with an effect whose outcome is not in the log: `stop` the
    row, `retry` the call, or `skip` it. is_replay: a request that is not in the log is an error.
    """

    def __init__(self, file: LogFile, on_unknown: str = "stop") -> None:
        if on_unknown not in ON_UNKNOWN:
            raise UsageError(f"on_unknown must be one of {', '.join(ON_UNKNOWN)}")
        self.path = file.path
        self.on_unknown = on_unknown
        self.is_replay = file.is_read_only
        self._file = file
        self._checked: tuple[Header, Capabilities] | None = None
        self._changed: dict[str, str] = {}  # the names of changed arguments, by row
        # A log has wall-clock times: the monotonic clock restarts with the machine.
        self._clock_s = time.time() - time.monotonic()

    @staticmethod
    def open(
        path: str | os.PathLike[str], on_unknown: str = "stop", watch: Watch | None = None
    ) -> RunLog:
        """Opens a log to continue it, or creates it. watch: called with its records.

        Raises RunLogError for a file that is not a log, is damaged, or is being written by another
        process.
        """
        return RunLog(LogFile.open(os.fspath(path), watch=watch), on_unknown)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> RunLog:
        """Opens a log to replay it: nothing is written, and a missing reply is an error."""
        log = RunLog(LogFile.read(os.fspath(path)))
        if log.header is None:
            log.close()
            raise RunLogError(f"{log.path} is not the log of a run: no run was begun in it")
        return log

    @staticmethod
    def temporary() -> RunLog:
        """A log in a file without a name, deleted when it is closed."""
        return RunLog(LogFile.temporary())

    def close(self) -> None:
        """Closes the file; closing it again does nothing."""
        self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading --------------------------------------------------------------------------

    def find(self, *key: Any) -> Json | None:
        """The last record of a kind and place; None if there is none."""
        return self._file.find(key)

    def find_same(self, key: Key, fingerprint: str, what: str, where: str) -> Json | None:
        """The record at a place; raises NonDeterministicProgram if its request is another one."""
        found = self._file.find(key)
        if found is not None and found.get("fingerprint") != fingerprint:
            logged = f"{found['kind']} {found.get('name') or ''}".rstrip()
            changed = self._changed.get(str(found.get("row")))
            if changed:
                raise NonDeterministicProgram(
                    f"arguments of this row are not those of {self.path}: {changed}",
                    where=where,
                    hint=f"{_ANEW}, or pass the same arguments",
                )
            raise NonDeterministicProgram(
                f"the program comes to {what}, where its log has another request: {logged} at "
                f"{found.get('line') or 'an unknown line'}",
                where=where,
                hint="it depends on what changes from run to run (time, randomness, files, its own "
                f"text); {_ANEW}, or undo the change",
            )
        return found

    def records(self) -> Iterator[Json]:
        """All records in order, the last one of each place."""
        places = self._file.places()
        return (found for key in places if (found := self._file.find(key)) is not None)

    def count(self, kinds: Collection[str]) -> int:
        """How many records there are of these kinds; none is read."""
        return sum(key[0] in kinds for key in self._file.places())

    @property
    def header(self) -> Header | None:
        """The program of the log; None if no run has begun."""
        found = self.find("program")
        if found is None:
            return None
        try:
            return Header(*(instance_of(found[name], kind) for name, kind in _HEADER.items()))
        except (KeyError, TypeError) as error:
            raise RunLogError(f"{self.path}: the program's record is malformed: {error}") from error

    def capabilities(self) -> Capabilities:
        """Returns the capabilities of the backend that the log's replies came from."""
        found = self.find("backend") or {}
        try:
            return capabilities_of(found["capabilities"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunLogError(f"{self.path}: it does not name the backend: {error}") from error

    def rows(self) -> list[str]:
        """The keys of the rows that were begun, in order."""
        return [key[1] for key in self._file.places() if key[0] == "row"]

    def arguments(self, row: str) -> Json | None:
        """Returns a row's arguments; None if they were not plain data."""
        found = self.find("row", row)
        arguments = None if found is None else found.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise RunLogError(f"{self.path}: the arguments of row {row} are not an object")
        return arguments

    # -- writing --------------------------------------------------------------------------

    def begin(
        self, header: Header, row: str, arguments: Mapping[str, Any], capabilities: Capabilities
    ) -> None:
        """Begins a row.

        Raises GuardError if the log has another program or model, LogOptionsError if it was written
        with another seed or options.
        """
        if self._checked != (header, capabilities):
            before = self.header
            if before is None:
                self._begin_program(header, capabilities)
            else:
                self._check_program(before, header, capabilities)
            self._checked = (header, capabilities)
        self._note_changes(row, self.arguments(row) or {}, _plain_or_none(arguments) or {})
        if self.find("row", row) is None and not self.is_replay:
            self.append({"kind": "row", "row": row, "arguments": _plain_or_none(arguments)})

    def _note_changes(self, row: str, before: Json, now: Json) -> None:
        """Notes which arguments have changed, for the error about a request that differs."""
        both = before.keys() & now.keys()  # a compiled program lacks the arguments it fixed
        changed = sorted(name for name in both if before[name] != now[name])
        if changed:
            self._changed[row] = ", ".join(changed)

    def _begin_program(self, header: Header, capabilities: Capabilities) -> None:
        self.append({"kind": "backend", "capabilities": capabilities_json(capabilities)})
        self.append(
            {
                "kind": "program",
                "name": header.program,
                "fingerprint": header.fingerprint,
                "seed": header.seed,
                "options": dict(header.options),
            }
        )

    def check(self, now: Header, model: str | None) -> None:
        """Raises, as `begin` does, for another program, model, seed or options; for a run that
        makes no requests, and so begins no row. model: None if it is not known.
        """
        before = self.header
        if before is not None:
            self._check_header(before, now)
            if model is not None:
                self._check_model(model)

    def _check_header(self, before: Header, now: Header) -> None:
        if (before.program, before.fingerprint) != (now.program, now.fingerprint):
            raise GuardError(
                f"{self.path} is the log of {before.program} as it was then "
                f"({before.fingerprint[:12]}), not of this {now.program} ({now.fingerprint[:12]})",
                hint=f"the program, or something it reads, has changed: {_ANEW}",
            )
        if (before.seed, before.options) != (now.seed, now.options):
            raise LogOptionsError(
                f"{self.path} was written with {_shown(before)}, and this run has {_shown(now)}",
                hint="leave the options out: a resumed run takes those of its log",
            )

    def _check_program(self, before: Header, now: Header, capabilities: Capabilities) -> None:
        self._check_header(before, now)
        self._check_model(capabilities.model)

    def _check_model(self, now: str) -> None:
        before = self.capabilities().model
        if before != now:
            raise GuardError(
                f"{self.path} was written on {before}, not on {now}",
                hint=f"go on with {before}; or {_ANEW}",
            )

    def append(self, record: Json) -> None:
        """Adds a record, which survives a crash of the process once this returns."""
        self._file.append(record)

    def sync(self) -> None:
        """Waits until all records would survive a crash of the machine."""
        self._file.sync()

    async def append_durably(self, record: Json) -> None:
        """Adds a record, which survives a crash of the machine once this returns."""
        self._file.append(record)
        await asyncio.to_thread(self._file.sync)

    def forget(self, row: str) -> None:
        """Forgets a row that is done: this process does not need its records any more."""
        self._file.forget(row)
        self._changed.pop(row, None)

    def wall_s(self, monotonic_s: float) -> float:
        """Converts a time of the monotonic clock to the log's: seconds since 1970."""
        return round(self._clock_s + monotonic_s, 6)


def _plain_or_none(arguments: Mapping[str, Any]) -> Any:
    try:
        return plain_copy(dict(arguments))
    except (TypeError, ValueError):
        return None


def _shown(header: Header) -> str:
    """The seed and options of a log."""
    given = {"seed": header.seed, **header.options}
    return ", ".join(f"{name}={value!r}" for name, value in given.items())
