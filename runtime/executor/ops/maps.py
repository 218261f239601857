"""Maps at run time: a called program runs for each item of a list, several at a time.

Each call is a run of its own on the same backend, loop and log, at the same path as in the
interpreter. The error of a map must not depend on timing: when a call fails, later calls are
cancelled and earlier ones continue, since sequential calls would have finished those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from sgc.errors import UsageError
from sgc.ir.graph import Graph, Lit, Node
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.interface.value_limits import MAX_ITEMS, LimitExceeded
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.run.map_places import MapPlace, call_path
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.run.values import Unset

T = TypeVar("T")


async def run_map(run: Run, node: Node) -> tuple[Any, ...]:
    """The handler of the op `map`."""
    place = run.maps.begin(node)
    items = checked_items(run.field(node, "items"))
    graph = run.context.called.graphs[run.field(node, "program")]
    fixed = dict(zip(run.field(node, "keys"), run.field(node, "args"), strict=True))
    (element,) = (p.value.name for p in graph.params if p.value.name not in fixed)
    caller = run.field(node, "caller").path

    async def call(index: int) -> RunResult:
        path = call_path(caller, graph.name, place.ordinal, index)
        return await _run_part(run, node, graph, {**fixed, element: items[index]}, path, place)

    results = await in_order(len(items), run.field(node, "width"), call)
    run.take_in(place, results)
    return tuple(_gathered(node, results))


async def _run_part(
    run: Run, node: Node, graph: Graph, arguments: dict[str, Any], path: str, place: MapPlace
) -> RunResult:
    part = run.part(graph.name, bind_arguments(graph, arguments), path, place, node)
    try:
        part.start(graph)
        return await part.finished
    finally:
        await run.work.leave(part)


def checked_items(items: Any) -> Sequence[Any]:
    """Returns the items of a map; raises UsageError if they are not a list."""
    if not isinstance(items, (list, tuple)):
        raise no_list(type(items).__name__)
    if len(items) > MAX_ITEMS:
        raise LimitExceeded(f"sgc.map of {len(items)} items; {MAX_ITEMS} are allowed")
    return items


def no_list(found: str, where: str = "") -> UsageError:
    """Returns the error of a map over a value of another type."""
    return UsageError(
        f"sgc.map goes over a list, found a value of type {found}",
        where=where,
        hint="pass a list: a list[…] argument, gen(n=…), text.split(…), or JSON that is a list",
    )


def _gathered(node: Node, results: Sequence[RunResult]) -> list[Any]:
    """Returns the result lists of a map; a variable's list is unset if one call did not set it."""
    names = node.get("names")
    assert isinstance(names, tuple)
    found: list[Any] = []
    for name in (str(name.value) for name in names if isinstance(name, Lit)):
        is_set = all(name in result.variables for result in results)
        found.append([one.variables[name] for one in results] if is_set else Unset(name))
    if node.get("returns") == Lit(True):
        found.append([result.ret_value for result in results])
    if node.get("texts") == Lit(True):
        found.append([result.text() for result in results])
    return found


async def in_order(n: int, width: int, call: Callable[[int], Coroutine[Any, Any, T]]) -> list[T]:
    """Returns the results of n calls, of which at most `width` run at a time.

    If calls fail, raises the error of the first one in order. Cancelling it cancels the running
    calls, and waits for them.
    """
    calls = _Calls(n, call)
    try:
        while calls.begin(width):
            await calls.next()
    finally:
        await calls.stop()
    if calls.error is not None:
        raise calls.error
    return [calls.results[index] for index in range(n)]


class _Calls(Generic[T]):
    def __init__(self, n: int, call: Callable[[int], Coroutine[Any, Any, T]]) -> None:
        self._end = n  # the first call that failed, or n: later calls are not made
        self._call = call
        self._n_begun = 0
        self._running: dict[asyncio.Task[T], int] = {}
        self.results: dict[int, T] = {}
        self.error: BaseException | None = None

    def begin(self, width: int) -> bool:
        """Begins calls while there is room; returns whether any are running."""
        while self._n_begun < self._end and len(self._running) < width:
            task = asyncio.get_running_loop().create_task(self._call(self._n_begun))
            self._running[task] = self._n_begun
            self._n_begun += 1
        return bool(self._running)

    async def next(self) -> None:
        """Waits until some calls are over."""
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            index = self._running.pop(task)
            if task.cancelled():
                self._failed(index, asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                self._failed(index, error)
            else:
                self.results[index] = task.result()

    def _failed(self, index: int, error: BaseException) -> None:
        if index >= self._end:
            return
        self._end, self.error = index, error
        for task, other in self._running.items():
            if other > index:
                task.cancel()

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
