"""Runs a job: rows that are read, run and written as they go, so that memory does not grow.

A row is done once its record is written. An error that ends the job (the disk is full, the budget
is spent, no engine answers) is no result of a row: such rows are not written, and run again when
the job goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from sgc.errors import (
    BatchStopped,
    BudgetExceeded,
    EngineUnavailable,
    GuardError,
    LogOptionsError,
    LogUnwritable,
    ProgramError,
    SgcError,
)
from sgc.planning.plan import RowSize
from sgc.planning.room import Room
from sgc.runs.batch import WINDOW, BatchOptions
from sgc.runs.crew import Crew, Row, pool_tokens_of
from sgc.runs.jobs.records import Record, record_of
from sgc.runs.jobs.tally import Tally
from sgc.runs.jobs.windows import Start, Window, Windows
from sgc.runs.rows.records import InputRow
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.record import RunResult

# After so many consecutive rows without an answer, no engine is assumed to be there.
MAX_UNANSWERED = 32
Outcome = RunResult | BaseException


class TooManyFailed(SgcError):
    """More rows failed than `--max-errors` allows."""


def check_errors(
    tally: Tally, limit: int | None, key: str = "", error: BaseException | None = None
) -> None:
    """Raises TooManyFailed if more rows have failed than `limit`. key, error: of the last one."""
    if limit is None or tally.n_all_failed <= limit:
        return
    last = "" if error is None else f"; row {key}: {error}"
    raise TooManyFailed(
        f"{tally.n_all_failed} of {tally.n_rows} rows failed{last}",
        hint="give a larger --max-errors, or with --resume --retry-errors",
    ) from error


class Writes(Protocol):
    def write(self, record: Record) -> None: ...


@dataclass(frozen=True, slots=True)
class JobParts:
    """What a job works with. tell: called after each row; note: with lines about a window's plan.
    is_ordered: results are written in the order of the input."""

    windows: Windows
    options: BatchOptions
    backend: Backend
    out: Writes
    log: RunLog | None
    tally: Tally
    tell: Callable[[], None]
    note: Callable[[str], None]
    is_ordered: bool = False


class Job:
    """A job under way; lives on the shared loop."""

    def __init__(self, parts: JobParts) -> None:
        self._parts = parts
        self._is_planned = parts.options.order == "plan"
        self._sizes: dict[int, RowSize] = {}  # of rows that start or are under way, if planned
        self._under_way: dict[int, Start] = {}
        self._unanswered: list[tuple[Start, Outcome]] = []
        self._order = _InOrder() if parts.is_ordered else None
        self._crew: Crew | None = None
        self._is_over = self._is_answered = False
        self.budget: BudgetExceeded | None = None  # the error that has ended the job

    async def run(self) -> None:
        """Runs all rows. Raises the error that ends the job early: of its files, of an engine that
        is not there, or TooManyFailed."""
        parts = self._parts
        check_errors(parts.tally, parts.options.max_errors)
        pool_tokens = await pool_tokens_of(parts.backend) if self._is_planned else None
        sizes = self._sizes if self._is_planned else None
        room = Room(parts.options.max_concurrency, sizes, pool_tokens)
        self._crew = Crew(room, parts.options.threads_for(WINDOW))
        async with aclosing(self._starts()) as starts:
            await self._crew.run(starts, self._took)
        self._give_up_on_unanswered()

    async def _starts(self) -> AsyncGenerator[tuple[int, Row], None]:
        """Rows by number. The next window is read and planned while the rows of one start."""
        windows = self._parts.windows
        window: Window | None = await asyncio.to_thread(windows.next)
        for note in window.notes if window is not None else ():
            self._parts.note(note)
        number = 0
        while window is not None:
            ahead = asyncio.ensure_future(asyncio.to_thread(windows.next))
            try:
                for start in window.starts:
                    self._under_way[number] = start
                    if self._is_planned:
                        self._sizes[number] = start.size or _NOTHING
                    yield number, start.row
                    number += 1
            finally:
                # A thread cannot be stopped, and the files that it reads are closed next.
                await asyncio.wait({ahead})
            window = ahead.result()

    async def _took(self, number: int, state: RunState) -> None:
        """Takes a row that has ended. Nothing is written after an error that ends the job: rows
        under way may still end before they are cancelled."""
        if self._is_over:
            return
        try:
            await self._take(number, state)
        except BaseException:
            self._is_over = True
            raise

    async def _take(self, number: int, state: RunState) -> None:
        start = self._under_way.pop(number)
        outcome: Outcome = state.error() or state.result()
        if isinstance(outcome, BudgetExceeded):
            self.budget = self.budget or outcome
            assert self._crew is not None
            self._crew.stop()
            if self._order is not None:
                self._order.stop()
            return
        if _ends_all(outcome):
            assert isinstance(outcome, BaseException)
            raise outcome
        if isinstance(outcome, EngineUnavailable):
            self._unanswered.append((start, outcome))
            if len(self._unanswered) >= MAX_UNANSWERED:
                raise outcome
            if self._order is not None:
                self._order.put_off(start.position)
            return
        self._is_answered = True
        unanswered, self._unanswered = self._unanswered, []
        for each in (*unanswered, (start, outcome)):
            self._end(*each)
        if self._order is not None:
            await self._order.passed(start.position)

    def _give_up_on_unanswered(self) -> None:
        """Ends rows still unanswered at the end as failed, unless no row was answered at all."""
        if not self._unanswered:
            return
        error = self._unanswered[-1][1]
        if not self._is_answered:
            assert isinstance(error, BaseException)
            raise error
        for each in self._unanswered:
            self._end(*each)

    def _end(self, start: Start, outcome: Outcome) -> None:
        if self._order is None:
            self._write(start.given, outcome)
            return
        for given, ended in self._order.add(start.position, start.given, outcome):
            self._write(given, ended)

    def _write(self, row: InputRow, outcome: Outcome) -> None:
        parts = self._parts
        try:
            parts.out.write(record_of(row, outcome))
        except ProgramError as error:
            outcome = error
            parts.out.write(record_of(row, outcome))
        if parts.log is not None:
            parts.log.forget(row.key)
        tally = parts.tally
        tally.add(row.key, outcome)
        parts.tell()
        if isinstance(outcome, BaseException):
            check_errors(tally, parts.options.max_errors, row.key, outcome)


_NOTHING = RowSize(0, 0, 0)


def _ends_all(outcome: Outcome) -> bool:
    """Whether an error ends the job rather than its row: every other row would fail with it too."""
    return isinstance(outcome, LogUnwritable | GuardError | LogOptionsError | BatchStopped)


class _InOrder:
    """Rows that have ended before earlier rows; at most WINDOW of them wait, all of one window."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[InputRow, Outcome]] = {}
        self._put_off: set[int] = set()
        self._next = 0
        self._changed = asyncio.Event()
        self._is_stopped = False

    def add(
        self, position: int, given: InputRow, outcome: Outcome
    ) -> list[tuple[InputRow, Outcome]]:
        """The rows that may be written now, in order."""
        self._held[position] = given, outcome
        self._put_off.discard(position)
        found = []
        while self._next in self._held:
            found.append(self._held.pop(self._next))
            self._next += 1
        if found:
            self._changed.set()
        return found

    async def passed(self, position: int) -> None:
        """Waits while too many rows are held, so that no more start."""
        while position in self._held and len(self._held) > WINDOW and not self._is_stopped:
            if self._next in self._put_off:
                return
            self._changed.clear()
            await self._changed.wait()

    def put_off(self, position: int) -> None:
        """Notes that a row was not answered: its outcome comes later, so no row waits for it."""
        self._put_off.add(position)
        self._changed.set()

    def stop(self) -> None:
        """Notes that an outcome will not come: the rows after it run again when the job goes on."""
        self._is_stopped = True
        self._changed.set()
