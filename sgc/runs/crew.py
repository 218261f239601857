"""Runs rows when there is room: compiled rows on the event loop, interpreted rows on threads.

It knows neither the source of rows nor the use of results: a batch (`batch.py`) holds all of its
rows, a job (`jobs/`) reads them as they start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from sgc.core.garbage import fewer_collections
from sgc.errors import BackendError
from sgc.ir.graph import Graph
from sgc.planning.room import Room
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.run.record import RunResult

# A batch keeps the results of its rows, and each full collection of garbage scans all of them: with
# Python's thresholds that was half the time of 10,000 small rows. This number is above the objects
# of rows under way, about a hundred each; else every wave of rows would be scanned. Rows leave
# nearly no cycles behind.
NEW_OBJECTS = 200_000


class Compiled(Protocol):
    """A compiled program, as a batch sees it."""

    @property
    def name(self) -> str: ...

    @property
    def graph(self) -> Graph: ...

    def with_graph(self, graph: Graph) -> Any: ...


StartRow = Callable[[Any], Coroutine[Any, Any, RunResult]]


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


async def pool_tokens_of(backend: Backend | None) -> int | None:
    """The tokens of the engine's pool; None if there is none, or no answer."""
    if backend is None:
        return None
    try:
        return (await backend.capabilities()).pool_tokens
    except BackendError:
        return None  # each row meets the same error and reports it


Take = Callable[[int, RunState], Coroutine[Any, Any, None]]


class Crew:
    """The rows under way; used for one batch or job. n_threads: for interpreted rows."""

    def __init__(self, room: Room, n_threads: int) -> None:
        self._room = room
        self._pool = _Pool(n_threads)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Starts no more rows; those under way end."""
        self._is_stopped = True

    async def run(self, starts: AsyncIterator[tuple[int, Row]], take: Take) -> None:
        """Runs rows in the order in which they come, with their numbers; calls `take` as each ends,
        which may delay the start of further rows.

        An error of `take` or of `starts` ends it: rows under way are cancelled.
        """
        self._failed = asyncio.get_running_loop().create_future()
        feeding = asyncio.ensure_future(self._feed(starts, take))
        try:
            with fewer_collections(NEW_OBJECTS):
                await asyncio.wait({feeding, self._failed}, return_when=asyncio.FIRST_COMPLETED)
            # If there is both an error and an end, the error counts: it came first.
            (self._failed if self._failed.done() else feeding).result()
        finally:
            feeding.cancel()
            self._failed.cancel()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(feeding, *self._tasks, return_exceptions=True)
            self._pool.close()

    async def _feed(self, starts: AsyncIterator[tuple[int, Row]], take: Take) -> None:
        async for number, row in starts:
            await self._room.enter(number)
            if self._is_stopped:
                self._room.leave(number)
                break
            task = asyncio.ensure_future(self._work(number, row, take))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _work(self, number: int, row: Row, take: Take) -> None:
        try:
            state = await self._outcome(row)
            if state.error() is None:
                self._room.learn(number, state.result())
            await take(number, state)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            assert self._failed is not None
            if not self._failed.done():
                self._failed.set_exception(error)
        finally:
            self._room.leave(number)

    async def _outcome(self, row: Row) -> RunState:
        try:
            if row.start is not None:
                outcome: RunResult | BaseException = await row.started()
            else:
                assert row.call is not None
                outcome = await self._pool.run(row.call)
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
