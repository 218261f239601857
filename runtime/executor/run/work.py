"""The running work of a run: its tasks, the runs of mapped calls, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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
        self._tasks: dict[asyncio.Task[None], str | None] = {}  # with the path of the stream
        self._parts: set[Part] = set()

    def background(self, work: Coroutine[Any, Any, None], path: str | None = None) -> None:
        """Starts a task of this run, which is cancelled with it, and for which `settle` waits.

        path: of the stream whose request the task makes, which may be cut off.
        """
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = path
        task.add_done_callback(self._tasks.pop)

    def enter(self, part: Part) -> None:
        """Adds a part, which is cancelled if this run ends."""
        self._parts.add(part)
        if self.finished.done():
            part.cancel()

    async def leave(self, part: Part) -> None:
        """Cancels a part if it has not ended, and waits until it has released the backend."""
        part.cancel()
        await part.settle()
        self._parts.discard(part)

    def cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    def cancel_asking(self, is_cut: Callable[[str], bool]) -> None:
        """Cancels the tasks that make requests of streams with certain paths."""
        for task, path in self._tasks.items():
            if path is not None and is_cut(path):
                task.cancel()

    def cancel_parts(self) -> None:
        for part in self._parts:
            part.cancel()

    async def settle(self) -> None:
        """Waits until cancelled requests have released the backend."""
        running = [task for task in self._tasks if not task.done()]
        if running:
            await asyncio.gather(*running, return_exceptions=True)
        for part in tuple(self._parts):
            await part.settle()


def is_stopped(error: BaseException) -> bool:
    """Whether an error in a task means that the task itself was cancelled or discarded."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):  # a coroutine that is closed outside its loop
        try:
            return asyncio.current_task() is None
        except RuntimeError:
            return True
    return False
