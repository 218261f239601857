"""Reads a job's rows window by window, leaves out those that are done, and plans the others.

A window has the same rows no matter which of them are done, so a job that goes on makes the same
requests as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from sgc.errors import OutputError
from sgc.planning.plan import RowSize
from sgc.runs.batch import WINDOW, BatchOptions
from sgc.runs.crew import Row
from sgc.runs.jobs.out import DoneRows
from sgc.runs.jobs.records import digest_of
from sgc.runs.planned_batch import make_batch
from sgc.runs.rows.records import InputRow
from sgc.runtime.executor.interface.backend import Backend


@dataclass(frozen=True, slots=True)
class Start:
    """A row to start. position: among those that are not done, in the order of the input."""

    given: InputRow
    row: Row
    position: int
    size: RowSize | None


@dataclass(frozen=True, slots=True)
class Window:
    """Rows in the order in which they start. notes: on their plan."""

    starts: tuple[Start, ...]
    notes: tuple[str, ...]


class OpenRows:
    """The rows that are not done, window by window. n_done: those that were left out so far."""

    def __init__(self, rows: Iterator[InputRow], done: DoneRows) -> None:
        self._rows, self._done = rows, done
        self._found: tuple[list[InputRow], list[int]] | None = None
        self.n_done = 0

    def is_over(self) -> bool:
        """Whether no row is left to run; reads on to the next row to run."""
        while self._found is None and (given := list(islice(self._rows, WINDOW))):
            open_ = [index for index, row in enumerate(given) if not self._is_done(row)]
            self.n_done += len(given) - len(open_)
            if open_:
                self._found = given, open_
        return self._found is None

    def take(self) -> tuple[list[InputRow], list[int]] | None:
        """All rows of the next window that has some to run, and the indices of these."""
        if self.is_over():
            return None
        found, self._found = self._found, None
        return found

    def _is_done(self, row: InputRow) -> bool:
        digest = self._done.digest(row.key)
        if digest is None:
            return False
        if digest != digest_of(row.arguments):
            raise OutputError(
                f"{row.place}: the row {row.key!r} has other arguments now than when it was done",
                hint="begin a new job: another --out and another log; or undo the change",
            )
        return True


class Windows:
    """Called from one thread at a time. made: makes the run of a row."""

    def __init__(
        self,
        rows: OpenRows,
        made: Callable[[InputRow], Row],
        options: BatchOptions,
        backend: Backend,
        max_tokens: int,
    ) -> None:
        self._rows, self._made = rows, made
        self._options, self._backend, self._max_tokens = options, backend, max_tokens
        self._n_before = 0

    def next(self) -> Window | None:
        """The next window that has rows to run; None after the last."""
        found = self._rows.take()
        return None if found is None else self._planned(*found)

    def _planned(self, given: list[InputRow], open_: list[int]) -> Window:
        # Which order of fields is best depends on all rows of the window.
        taken = range(len(given)) if self._options.reorder_fields else open_
        rows = [self._made(given[index]) for index in taken]
        batch = make_batch(rows, self._options, self._backend, self._max_tokens)
        positions = {index: self._n_before + n for n, index in enumerate(open_)}
        self._n_before += len(open_)
        sizes = None if batch.plan is None else batch.plan.sizes
        starts = [
            Start(given[index], batch.rows[n], positions[index], sizes[n] if sizes else None)
            for n in batch.order(in_windows=False)
            if (index := taken[n]) in positions
        ]
        return Window(tuple(starts), batch.notes)
