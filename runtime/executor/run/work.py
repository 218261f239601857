"""The running work of a run: its tasks, the runs of mapped calls, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from sgc.runtime.executor.run.record import RunResult


class Part(Protocol):
    """A run that is a part of another one."""

    def cancel(self) -> None: ...

    async def settle(self) -> None: ...


class Work:
    """Tasks and parts of one run. `finished` resolves with its result or its first error."""

    def __init__(self) -> None:
        self.finished: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._parts: set[Part] = set()

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of this run: cancelled with it, and waited for by `settle`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def enter(self, part: Part) -> None:
        """Takes a part, which ends with this run."""
        self._parts.add(part)
        if self.finished.done():
            part.cancel()

    async def leave(self, part: Part) -> None:
        """Stops a part, if it is not over, and waits until it has let go of the backend."""
        part.cancel()
        await part.settle()
        self._parts.discard(part)

    def cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    def cancel_parts(self) -> None:
        for part in self._parts:
            part.cancel()

    async def settle(self) -> None:
        """Waits until cancelled requests have let go of the backend."""
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in tuple(self._parts):
            await part.settle()


def is_stopped(error: BaseException) -> bool:
    """Whether an error in a task means that the task itself was cancelled or thrown away."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):  # of a coroutine that is closed outside its loop
        try:
            return asyncio.current_task() is None
        except RuntimeError:
            return True
    return False
