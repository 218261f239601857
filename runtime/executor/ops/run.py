"""The run as the handlers of its nodes see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from sgc.errors import DeoptReached
from sgc.ir.graph import Graph, Node
from sgc.runtime.executor.ops.asking import Asking
from sgc.runtime.executor.run.context import Context
from sgc.runtime.executor.run.cuts import Cuts
from sgc.runtime.executor.run.map_places import MapPlace, Maps
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.run.requests import Requests
from sgc.runtime.executor.run.stream_order import Streams
from sgc.runtime.executor.run.values import Values
from sgc.runtime.executor.run.work import Part, Work
from sgc.runtime.executor.tools.tool_calls import Tools

if TYPE_CHECKING:
    from sgc.runtime.executor.code.live import Memory


class MappedRun(Part, Protocol):
    """The run of one call of a map."""

    @property
    def finished(self) -> asyncio.Future[RunResult]: ...

    def start(self, graph: Graph) -> None: ...


class Run(Protocol):
    """One run of one program, by its parts. `Instance` implements it."""

    context: Context
    values: Values
    streams: Streams
    requests: Requests
    maps: Maps
    cuts: Cuts
    tools: Tools
    asking: Asking
    work: Work

    @property
    def memory(self) -> Memory:
        """The objects that code on live objects has made."""
        ...

    def is_argument(self, name: str) -> bool:
        """Whether a value is one that the program was given."""
        ...

    def field(self, node: Node, name: str) -> Any:
        """The value of a field of a node that is ready."""
        ...

    async def reached(self, node: Node) -> None:
        """Waits until Python would have come to a node: all values before it are there."""
        ...

    def path_of(self, node: Node) -> str:
        """The call path of a stream that begins."""
        ...

    def hold(self) -> None:
        """Keeps the run open until `release`, as an unfinished node does."""
        ...

    def release(self) -> None: ...

    def returns(self, value: Any) -> None:
        """Sets the program's return value."""
        ...

    def leaves(self, error: DeoptReached) -> None:
        """Ends the run with this error once all that began before has ended, and is in its log."""
        ...

    def fail_unless_stopped(self, node: Node | None, error: BaseException) -> None:
        """Ends the run with an error of one of its tasks, unless the task itself was stopped."""
        ...

    def part(
        self,
        program: str,
        arguments: Mapping[str, Any],
        path: str,
        place: MapPlace,
        node: Node | None = None,
    ) -> MappedRun:
        """A run of a program that a node calls as a part of this run, until `work.leave` is called
        with it."""
        ...

    def take_in(self, place: MapPlace, results: Iterable[RunResult]) -> None:
        """Adds the results of a map's calls to this run's, at the map's place."""
        ...
