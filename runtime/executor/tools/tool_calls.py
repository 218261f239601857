"""Tools at run time: the Python function of each name, and the calls of one run.

A program only names its tools. The caller of the run decides which function a name means; else it
is the tool of that name that the program's own Python calls. Nothing is imported here. Calls
overlap with generations; `run/tool_order.py` decides which calls wait for others.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

from sgc.errors import ToolError
from sgc.ir.graph import Lit, Node
from sgc.ir.op_specs import Flag
from sgc.ir.ops import ops_with
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.plain import canonical, checked, plain_copy
from sgc.runtime.executor.interface.tools import ToolImpl, ToolSource
from sgc.runtime.executor.run.context import Context
from sgc.runtime.executor.run.record import ToolCall
from sgc.runtime.executor.run.tool_order import CallPlace, ToolMark, ToolOrder
from sgc.runtime.executor.tools.early import EarlyCalls, Foreseen, worked
from sgc.runtime.executor.tools.logged import LoggedCall, Outcome
from sgc.runtime.executor.tools.threads import Outcome as ThreadOutcome
from sgc.runtime.executor.tools.threads import call_on_loop, call_on_thread

Begun = asyncio.Task[ThreadOutcome]


class Caller(Protocol):
    """The run that a tool is called in."""

    @property
    def context(self) -> Context: ...

    @property
    def tools(self) -> Tools: ...

    def field(self, node: Node, name: str) -> Any:
        """The value of a field of a node that is ready."""
        ...

    async def reached(self, node: Node) -> None:
        """Waits until Python would have come to a node."""
        ...


_TOOLS = ops_with(Flag.LOGGED)  # computed once: every node of every run is checked


class Tools:
    """The tools of one run, and their calls. order: the order of the calls."""

    def __init__(self, allowed: ToolSource | None) -> None:
        self.order = ToolOrder()
        self.early = EarlyCalls(self._begin)
        self._allowed = allowed
        self._own: dict[str, ToolImpl] = {}
        self._python = contextvars.Context()

    def allow(self, tools: Iterable[ToolImpl], python: contextvars.Context | None = None) -> None:
        """Allows the program's own tools; the caller's tools take precedence. python: the context
        of the run's caller, in which pieces of the program's source run."""
        self._own.update((tool.name, tool) for tool in tools)
        self._python = python or contextvars.copy_context()

    def check(self, nodes: Iterable[Node]) -> None:
        """Raises ToolError for the first call whose tool is not allowed, or does not match."""
        for node in nodes:
            if node.op in _TOOLS:
                self.resolve(node)

    def part(self, mark: ToolMark) -> Tools:
        """The tools of one call of a map; its effects follow those before the map."""
        tools = Tools(self._allowed)
        tools._own, tools.order = self._own, self.order.part(mark)
        tools._python = self._python
        return tools

    def resolve(self, node: Node) -> ToolImpl:
        name = node.text("name")
        found = self._allowed.find(node) if self._allowed is not None else None
        found = found or self._own.get(name)
        where = str(node.loc or "")
        if found is None:
            raise ToolError(
                f"the program calls the tool {name!r}, which is not allowed",
                where=where,
                hint="name the Python it is in: --tools PROG.py, or allow_tools=[function]",
            )
        for what, compiled in (("signature", found.signature), ("effect", found.effect)):
            if compiled is not None and compiled != node.text(what):
                raise ToolError(
                    f"the tool {name!r} is not the one that the program was compiled for: its "
                    f"{what} was {node.text(what)!r} and is {compiled!r}",
                    where=where,
                    hint="compile the program anew, or allow the tool it was compiled with",
                )
        return found

    def piece(self, node: Node) -> Callable[..., Any]:
        """The Python of a piece of the program's source."""
        return functools.partial(self._python.run, self._own[node.text("name")].call)

    async def call(self, run: Caller, node: Node) -> Any:
        """Makes the call of a node when it is its turn; returns its value."""
        place = self.order.begin(node)
        if place.done is None:
            return await self._call(run, node, place)
        return await self.in_turn(run, node, place, lambda: self._call(run, node, place))

    async def in_turn(
        self,
        run: Caller,
        node: Node,
        place: CallPlace,
        work: Callable[[], Coroutine[Any, Any, Any]],
    ) -> Any:
        """Makes a call with an effect in its turn: after all that is before it in the program."""
        assert place.done is not None
        await run.reached(node)
        if place.after is not None:
            await asyncio.shield(place.after)
        async with self.order.turn:
            value = await work()
        place.done.set_result(None)
        return value

    async def _call(self, run: Caller, node: Node, place: CallPlace) -> Any:
        context = run.context
        path = _path(context, node)
        args = arguments_of(run, node)
        on_error = run.field(node, "on_error")
        instead = None if on_error is None else json.loads(on_error)
        written = canonical(args)  # before the call, which may change them
        begun: Begun | None = None
        start_s = time.monotonic()

        def make() -> Coroutine[Any, Any, tuple[Any, str]]:
            nonlocal begun  # a call in the log is not made, so the early call is dropped
            begun = self.early.take(node.text("name"), written)
            return self._make(node, run.field(node, "timeout_s"), instead, begun, *args)

        log = context.options.log
        if log is None:
            outcome = Outcome(*await make())
        else:
            logged = LoggedCall(
                log, context.row, path, place.ordinal, node, json.loads(written), instead
            )
            outcome = await logged.outcome(make)
        made = ToolCall(
            node.text("name"), place.ordinal, node.text("effect"), written, node.loc,
            start_s, time.monotonic(), outcome.error, outcome.is_logged, path,
            is_early=worked(begun),
        )  # fmt: skip
        self.order.add(place, made)
        if type(outcome.value) is Failed and not _catches(node):
            raise outcome.value.error()  # the log is from a run that handled the failure
        return outcome.value

    async def _make(
        self, node: Node, timeout_s: float | None, instead: Any, begun: Begun | None,
        args: list[Any], kwargs: Mapping[str, Any],
    ) -> tuple[Any, str]:  # fmt: skip
        """Returns the value that the program sees, and the error that it replaces, if any.

        begun: the call, if it began early.
        """
        value, error = (None, None) if begun is None else await begun
        if begun is None or error is not None:
            value, error = await self._python_call(node, timeout_s, args, kwargs)
        if error is None:
            try:
                return _checked(node, value), ""
            except ToolError as unfit:
                if not _catches(node):
                    raise
                error = unfit
        failed = Failed.of(node.text("name"), error, str(node.loc or ""))
        if instead is not None:
            return instead, failed.text
        if _catches(node) and isinstance(error, Exception):
            return failed, failed.text
        raise failed.error()

    def foresee(self, context: Context, calls: Iterable[Foreseen]) -> None:
        """Begins calls of arms, one of which will be taken, unless their outcome is in the log."""
        self.early.foresee(call for call in calls if not self._is_logged(context, call.node))

    def _is_logged(self, context: Context, node: Node) -> bool:
        """Whether the log has the next call of a node's path, so that the run is not past it."""
        log = context.options.log
        if log is None:
            return False
        ordinal = self.order.next_ordinal(node)
        found = log.find("tool", context.row, _path(context, node), ordinal)
        return log.is_replay or found is not None

    async def _begin(self, call: Foreseen) -> ThreadOutcome:
        return await self._python_call(call.node, call.timeout_s, *call.arguments)

    async def _python_call(
        self, node: Node, timeout_s: float | None, args: list[Any], kwargs: Mapping[str, Any]
    ) -> ThreadOutcome:
        tool = self.resolve(node)

        def call() -> Any:
            # What a tool sets in its context is not for its thread's next calls.
            return contextvars.Context().run(tool.call, *args, **kwargs)

        made = call_on_loop if tool.is_async else call_on_thread
        return await made(call, timeout_s)


def _path(context: Context, node: Node) -> str:
    return context.placed(node.text("path")) if node.text("path") else context.base


def arguments_of(run: Caller, node: Node) -> tuple[list[Any], dict[str, Any]]:
    """Copies the arguments, by position and by name, since a tool may change them."""
    try:
        args = [plain_copy(arg) for arg in run.field(node, "args")]
    except (TypeError, ValueError) as error:
        raise ToolError(
            f"an argument of the tool {node.text('name')!r} is not plain data: {error}",
            hint="pass text, numbers, bools, and lists and dicts of them",
        ) from error
    keys = run.field(node, "keys")
    n_placed = len(args) - len(keys)
    return args[:n_placed], dict(zip(keys, args[n_placed:], strict=True))


def _checked(node: Node, value: Any) -> Any:
    type_ = node.results[0].type
    try:
        return checked(value, type_)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"the tool {node.text('name')!r} did not return {type_}, as its annotation says: "
            f"{error}",
            hint="annotate what it returns: str, int, float, bool, list[str] or dict",
        ) from error


def _catches(node: Node) -> bool:
    return node.get("catches") == Lit(True)
