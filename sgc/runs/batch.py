"""Many runs of one program: compiled rows on the event loop, interpreted rows on a thread pool.

The caller makes the rows before the batch starts: making one may trace and compile, which must
not happen on the loop. Rows start in the order of the batch's plan, if it has one, at most
`max_concurrency` at a time and only as many as fit the engine's pool (`planning/room.py`). A row
that fails is returned with its error, and the others continue until more than `max_errors` have
failed. `runs/row_iterator.py` returns the rows to the caller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sgc.core.garbage import fewer_collections
from sgc.errors import BackendError, SgcError, UsageError
from sgc.ir.graph import Graph
from sgc.planning.room import Room
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.run.record import RunResult

if TYPE_CHECKING:
    from sgc.planning.plan import BatchPlan

MAX_CONCURRENCY = 1024  # the default number of rows under way
MAX_THREADS = 96  # for interpreted rows, if no number is given

ORDERS = ("plan", "given")
# Rows that are returned in the given order are reordered only within windows of this many, because
# a finished row is held until the rows before it are finished.
WINDOW = 4096
# A batch keeps the results of its rows, and each full collection of garbage scans all of them: with
# Python's thresholds that was half the time of 10,000 small rows. This is above what rows under way
# hold, about a hundred objects each; else every wave of rows would be scanned. Rows leave nearly no
# cycles behind.
NEW_OBJECTS = 200_000


class Compiled(Protocol):
    """A compiled program, as a batch sees it."""

    @property
    def name(self) -> str: ...

    @property
    def graph(self) -> Graph: ...

    def with_graph(self, graph: Graph) -> Any: ...


StartRow = Callable[[Any], Coroutine[Any, Any, RunResult]]


class BatchFailed(SgcError):
    """More rows failed than `max_errors` allows. states: the finished rows, by index."""

    def __init__(self, message: str, states: dict[int, RunState]) -> None:
        super().__init__(message, hint="give a larger max_errors, or None for no limit")
        self.states = states


@dataclass(frozen=True, slots=True)
class Row:
    """One run to make: `start` on the loop if it is compiled, else `call` on a thread.

    program: passed to `start`; it may be replaced by a variant; arguments: of the run. cancel:
    stops a call under way.
    """

    start: StartRow | None = None
    call: Callable[[], RunResult] | None = None
    cancel: Callable[[], None] | None = None
    how: str = "compiled"
    program: Compiled | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def started(self) -> Coroutine[Any, Any, RunResult]:
        """A compiled row's run, for the shared loop."""
        assert self.start is not None
        assert self.program is not None
        return self.start(self.program)


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
        room = Room(self.options.max_concurrency, sizes, await self._pool_tokens())
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tasks: set[asyncio.Task[None]] = set()
        pool = _Pool(self.options.threads_for(self.n_rows))

        async def work(index: int) -> None:
            try:
                state = await self._row(index, pool)
                if (error := state.error()) is not None:
                    self._count_failure(index, state, error, failed)
                else:
                    room.learn(index, state.result())
                await take(index, state)
            finally:
                room.leave(index)

        async def feed() -> None:
            for index in self.order(in_windows):
                await room.enter(index)
                task = asyncio.ensure_future(work(index))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            while tasks:
                await asyncio.gather(*tasks)

        feeding = asyncio.ensure_future(feed())
        try:
            with fewer_collections(NEW_OBJECTS):
                await asyncio.wait({feeding, failed}, return_when=asyncio.FIRST_COMPLETED)
            (feeding if feeding.done() else failed).result()
        finally:
            feeding.cancel()
            failed.cancel()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(feeding, *tasks, return_exceptions=True)
            pool.close()

    async def _pool_tokens(self) -> int | None:
        if self.plan is None or self.backend is None:
            return None
        try:
            return (await self.backend.capabilities()).pool_tokens
        except BackendError:
            return None  # each row meets the same error and reports it

    async def _row(self, index: int, pool: _Pool) -> RunState:
        row = self.rows[index]
        try:
            if row.start is not None:
                outcome: RunResult | BaseException = await row.started()
            else:
                assert row.call is not None
                outcome = await pool.run(row.call)
        except (asyncio.CancelledError, GeneratorExit) as error:
            if not _is_own_cancellation(error):
                if row.cancel is not None:
                    row.cancel()
                raise
            outcome = error
        except BaseException as error:
            # Any error stays with its row: a SystemExit would end the loop of all runs.
            outcome = error
        return RunState(outcome, row.how)

    def _count_failure(
        self, index: int, state: RunState, cause: BaseException, failed: asyncio.Future[None]
    ) -> None:
        self.n_failed += 1
        limit = self.options.max_errors
        if limit is not None and self.n_failed > limit and not failed.done():
            self.states[index] = state
            message = f"{self.n_failed} of {self.n_rows} rows failed; row {index}: {cause}"
            error = BatchFailed(message, self.states)
            error.__cause__ = cause
            failed.set_exception(error)


def _is_own_cancellation(error: BaseException) -> bool:
    """Whether a row cancelled itself, rather than the batch cancelling its task."""
    task = asyncio.current_task()
    is_cancelled = isinstance(error, asyncio.CancelledError)
    return is_cancelled and task is not None and not task.cancelling()


class _Pool:
    """Threads for interpreted rows, made when the first one runs."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, call: Callable[[], RunResult]) -> RunResult | BaseException:
        """Returns a call's result or its error, which could end the loop if it were raised."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_threads, thread_name_prefix="sgc-row")
        return await asyncio.get_running_loop().run_in_executor(self._pool, _outcome, call)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _outcome(call: Callable[[], RunResult]) -> RunResult | BaseException:
    try:
        return call()
    except BaseException as error:
        return error


def checked_rows(rows: Any) -> Sequence[Any]:
    """The rows of a batch as a sequence; raises UsageError for anything else."""
    if isinstance(rows, (str, bytes, dict)) or not hasattr(rows, "__iter__"):
        raise UsageError(f"a batch is a list of rows, found {type(rows).__name__}")
    return rows if isinstance(rows, Sequence) else list(rows)
