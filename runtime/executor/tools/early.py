"""Pure tools of an arm, called while the run waits for the test that decides whether it is taken.

A call begins if its arguments have values, or follow from values by functions in the arm; and only
while few threads are busy. If the arm is taken, the run's own call of the same tool with the same
arguments takes the value; if the early call failed, the run makes its call as usual. Calls of an
arm that is not taken are dropped: an asynchronous call is cancelled, a thread's value is discarded.
A run's results, requests and log are the same in each case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from sgc.errors import SgcError
from sgc.ir.graph import Node
from sgc.runtime.executor.tools.threads import Outcome, has_idle_threads

MAX_AT_ONCE = 8  # of all runs of this process

_open: set[asyncio.Task[Outcome]] = set()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A call that a run makes if an arm is taken. arguments: by position, and by name; written:
    these as JSON, to compare with the run's own call."""

    arm: str
    node: Node
    arguments: tuple[list[Any], dict[str, Any]]
    written: str
    timeout_s: float | None


@dataclass(slots=True)
class _Begun:
    task: asyncio.Task[Outcome]
    arms: set[str]


class EarlyCalls:
    """The early calls of one run. begin: makes a call. n_begun: the number of calls begun."""

    def __init__(self, begin: Callable[[Foreseen], Coroutine[Any, Any, Outcome]]) -> None:
        self.n_begun = 0
        self._begin = begin
        self._begun: dict[tuple[str, str], _Begun] = {}

    def foresee(self, calls: Iterable[Foreseen]) -> None:
        """Begins calls of arms, one of which will be taken, as far as there is idle capacity."""
        for call in calls:
            key = (call.node.text("name"), call.written)
            begun = self._begun.get(key)
            if begun is not None:
                begun.arms.add(call.arm)
            elif len(_open) < MAX_AT_ONCE and has_idle_threads():
                self._begun[key] = _Begun(self._task(call), {call.arm})

    def decide(self, arm: str) -> None:
        """Drops the calls of the arms that were not taken."""
        for key, begun in list(self._begun.items()):
            if arm not in begun.arms:
                begun.task.cancel()
                del self._begun[key]

    def take(self, name: str, arguments: str) -> asyncio.Task[Outcome] | None:
        """The early call of a tool with these arguments, if there is one. Each is returned once."""
        begun = self._begun.pop((name, arguments), None)
        return None if begun is None else begun.task

    def drop(self) -> None:
        """Drops all calls, when the run has ended."""
        for begun in self._begun.values():
            begun.task.cancel()
        self._begun.clear()

    def _task(self, call: Foreseen) -> asyncio.Task[Outcome]:
        task = asyncio.get_running_loop().create_task(self._outcome(call))
        _open.add(task)
        task.add_done_callback(_open.discard)
        self.n_begun += 1
        return task

    async def _outcome(self, call: Foreseen) -> Outcome:
        """Turns an error into an outcome too, as perhaps no call takes it."""
        try:
            return await self._begin(call)
        except SgcError as error:
            return None, error


def worked(begun: asyncio.Task[Outcome] | None) -> bool:
    """Whether an early call has ended with a value."""
    if begun is None or not begun.done() or begun.cancelled():
        return False
    _, error = begun.result()
    return error is None
