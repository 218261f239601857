"""Many runs of one program: compiled rows on the event loop, interpreted rows on a thread pool.

The caller makes the rows before the batch starts: making one may trace and compile, which must
not happen on the loop. Rows start in the order of the batch's plan, if it has one, at most
`max_concurrency` at a time and only as many as fit the engine's pool (`planning/room.py`). A row
that fails is returned with its error, and the others continue until more than `max_errors` have
failed. `runs/row_iterator.py` returns the rows to the caller.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sgc.errors import SgcError, UsageError
from sgc.planning.room import Room
from sgc.runs.crew import Compiled, Crew, Row, pool_tokens_of
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend

if TYPE_CHECKING:
    from sgc.planning.plan import BatchPlan

__all__ = ["Batch", "BatchFailed", "BatchOptions", "Compiled", "Row", "checked_rows"]

MAX_CONCURRENCY = 1024  # the default number of rows under way
MAX_THREADS = 96  # for interpreted rows, if no number is given

ORDERS = ("plan", "given")
# Rows that are returned in the given order are reordered only within windows of this many, because
# a finished row is held until the rows before it are finished.
WINDOW = 4096


class BatchFailed(SgcError):
    """More rows failed than `max_errors` allows. states: the finished rows, by index."""

    def __init__(self, message: str, states: dict[int, RunState]) -> None:
        super().__init__(message, hint="give a larger max_errors, or None for no limit")
        self.states = states


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a batch is run.

    num_threads: for interpreted rows; max_errors: the number of failed rows to tolerate, None for
    any; progress: a bar on stderr. order: "plan" puts rows that begin alike side by side;
    reorder_fields: also reorders the fields of prompts that are tables (`planning/fields.py`).
    """

    num_threads: int | str = "auto"
    max_concurrency: int = MAX_CONCURRENCY
    max_errors: int | None = None
    progress: bool = False
    order: str = "plan"
    reorder_fields: bool = False

    def __post_init__(self) -> None:
        is_number = isinstance(self.num_threads, int) and self.num_threads >= 1
        if self.num_threads != "auto" and not is_number:
            raise UsageError(f'num_threads must be "auto" or 1 or more, found {self.num_threads!r}')
        if self.max_errors is not None and self.max_errors < 0:
            raise UsageError(f"max_errors must be 0 or more, or None, found {self.max_errors!r}")
        if not isinstance(self.max_concurrency, int) or self.max_concurrency < 1:
            raise UsageError(f"max_concurrency must be 1 or more, found {self.max_concurrency!r}")
        if self.order not in ORDERS:
            raise UsageError(f"order must be one of {', '.join(ORDERS)}, found {self.order!r}")

    def threads_for(self, n_rows: int) -> int:
        wanted = self.num_threads
        most = max(MAX_THREADS, 16 * (os.cpu_count() or 1)) if wanted == "auto" else int(wanted)
        return max(1, min(most, n_rows))


@dataclass(slots=True)
class Batch:
    """A batch's rows and their states; lives on the shared loop.

    backend: its pool limits the rows under way; notes: reports on the plan.
    """

    rows: Sequence[Row]
    options: BatchOptions
    plan: BatchPlan | None = None
    backend: Backend | None = None
    notes: tuple[str, ...] = ()
    states: dict[int, RunState] = field(default_factory=dict)
    n_failed: int = 0

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def order(self, in_windows: bool) -> Sequence[int]:
        """Rows in the order they start in; in windows, all rows of a window before the next's."""
        if self.plan is None:
            return range(self.n_rows)
        order = self.plan.order
        return sorted(order, key=lambda row: row // WINDOW) if in_windows else order

    async def run(
        self,
        take: Callable[[int, RunState], Coroutine[Any, Any, None]],
        in_windows: bool = False,
    ) -> None:
        """Runs every row; calls `take` as each ends, which may delay the start of further rows."""
        sizes = None if self.plan is None else self.plan.sizes
        pool_tokens = None if self.plan is None else await pool_tokens_of(self.backend)
        room = Room(self.options.max_concurrency, sizes, pool_tokens)

        async def starts() -> AsyncGenerator[tuple[int, Row], None]:
            for index in self.order(in_windows):
                yield index, self.rows[index]

        async def took(index: int, state: RunState) -> None:
            if (error := state.error()) is not None:
                self._count_failure(index, state, error)
            await take(index, state)

        crew = Crew(room, self.options.threads_for(self.n_rows))
        async with aclosing(starts()) as rows:
            await crew.run(rows, took)

    def _count_failure(self, index: int, state: RunState, cause: BaseException) -> None:
        """Raises BatchFailed beyond `max_errors`."""
        self.n_failed += 1
        limit = self.options.max_errors
        if limit is not None and self.n_failed > limit:
            self.states[index] = state
            message = f"{self.n_failed} of {self.n_rows} rows failed; row {index}: {cause}"
            raise BatchFailed(message, self.states) from cause


def checked_rows(rows: Any) -> Sequence[Any]:
    """The rows of a batch as a sequence; raises UsageError for anything else."""
    if isinstance(rows, (str, bytes, dict)) or not hasattr(rows, "__iter__"):
        raise UsageError(f"a batch is a list of rows, found {type(rows).__name__}")
    return rows if isinstance(rows, Sequence) else list(rows)
