"""Tools at run time: which Python a name stands for, and the calls of one run.

A program only names its tools. A name is resolved against what the caller of the run allows,
else against the tools that the program's own Python was seen to call; nothing is imported here.
Calls whose effect is not `pure` run one after the other, in the order of the program; pure ones
as soon as their arguments are there. All overlap with generations.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sgc.errors import ToolError
from sgc.ir.graph import Lit, Node
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.plain import canonical, checked, plain_copy
from sgc.runtime.executor.run.record import ToolCall
from sgc.runtime.executor.tools.calls import call_on_loop, call_on_thread
from sgc.runtime.executor.tools.logged import LoggedCall, Outcome

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance

PURE = "pure"
EFFECTS = (PURE, "idempotent", "effect")


@dataclass(frozen=True, slots=True)
class ToolImpl:
    """The Python that a tool's name stands for. effect: None is whatever the program says."""

    name: str
    signature: str
    call: Callable[..., Any]
    is_async: bool = False
    effect: str | None = None


class ToolSource(Protocol):
    """What a caller allows."""

    def find(self, node: Node) -> ToolImpl | None:
        """What a call's name stands for; None if it is not allowed."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Tools by name."""

    by_name: Mapping[str, ToolImpl]

    def find(self, node: Node) -> ToolImpl | None:
        return self.by_name.get(node.text("name"))


# Among the calls of a run: its own calls before; 0 for what mapped calls made then, 1 for the next
# own call; the order of what mapped calls made.
Order = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ToolMark:
    """Where a map stands among the calls of its run. after: done when the effect before it is;
    done: to be done when it is over, if later effects wait for it.
    """

    order: Order
    after: asyncio.Future[None] | None
    done: asyncio.Future[None] | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a call stands among those of its run. ordinal: within the run, or the mapped call that
    it is made in; after: done when the effect before it is.
    """

    order: Order
    ordinal: int
    after: asyncio.Future[None] | None
    done: asyncio.Future[None] | None


class Tools:
    """The tool calls of one run."""

    def __init__(self, allowed: ToolSource | None) -> None:
        self._allowed = allowed
        self._own: dict[str, ToolImpl] = {}
        self._places: dict[str, _Place] = {}  # by the value that a call gives
        self._n_calls: Counter[str] = Counter()  # by the mapped call that they are made in
        self._n_mapped = 0
        self._last: asyncio.Future[None] | None = None
        self._turn = asyncio.Lock()  # of effects: one after the other, in mapped calls too
        self._made: list[tuple[Order, ToolCall]] = []

    def allow(self, tools: Iterable[ToolImpl]) -> None:
        """Allows tools of the program's own; those of the caller come first."""
        self._own.update((tool.name, tool) for tool in tools)

    def check(self, nodes: Iterable[Node]) -> None:
        """Raises ToolError for the first call whose tool is not allowed or another one."""
        for node in nodes:
            if Flag.HOST in node.flags:
                self.resolve(node)

    def note(self, node: Node) -> None:
        """Takes note of a call that is submitted, which is in the order of the program."""
        path, done = node.text("path"), None
        if node.text("effect") != PURE:
            done = asyncio.get_running_loop().create_future()
        order = self._mapped_order() if path else (self._n_calls[""], 1, 0)
        self._places[node.results[0].name] = _Place(order, self._n_calls[path], self._last, done)
        self._n_calls[path] += 1
        self._last = done or self._last

    def _mapped_order(self) -> Order:
        self._n_mapped += 1
        return self._n_calls[""], 0, self._n_mapped

    def mark(self, has_effects: bool) -> ToolMark:
        """Takes note of a map that is submitted. has_effects: later effects wait for it."""
        done = asyncio.get_running_loop().create_future() if has_effects else None
        mark = ToolMark(self._mapped_order(), self._last, done)
        self._last = done or self._last
        return mark

    def part(self, mark: ToolMark) -> Tools:
        """The tools of one call of a map; its effects follow those before the map."""
        tools = Tools(self._allowed)
        tools._own, tools._turn, tools._last = self._own, self._turn, mark.after
        return tools

    def take_in(self, mark: ToolMark, calls: Iterable[ToolCall]) -> None:
        """Takes the calls that a map's calls have made, in their order: it is over."""
        self._made.extend((mark.order, call) for call in calls)
        if mark.done is not None and not mark.done.done():
            mark.done.set_result(None)

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

    def made(self) -> tuple[ToolCall, ...]:
        """The calls that were made, in the order of the program."""
        return tuple(call for _, call in sorted(self._made, key=lambda made: made[0]))

    async def call(self, run: Instance, node: Node) -> Any:
        """What the call of a node gives, once it is its turn."""
        place = self._places.pop(node.results[0].name)
        if place.done is None:
            return await self._call(run, node, place)
        if place.after is not None:
            await asyncio.shield(place.after)
        async with self._turn:
            value = await self._call(run, node, place)
        place.done.set_result(None)
        return value

    async def _call(self, run: Instance, node: Node, place: _Place) -> Any:
        path = run.placed(node.text("path")) if node.text("path") else run.base
        args = _arguments(run, node)
        on_error = run.field(node, "on_error")
        instead = None if on_error is None else json.loads(on_error)
        written = canonical(args)  # before the call, which may change them
        start_s = time.monotonic()

        def make() -> Coroutine[Any, Any, tuple[Any, str]]:
            return self._make(node, run.field(node, "timeout_s"), instead, *args)

        log = run.options.log
        if log is None:
            outcome = Outcome(*await make())
        else:
            logged = LoggedCall(
                log, run.row, path, place.ordinal, node, json.loads(written), instead
            )
            outcome = await logged.outcome(make)
        made = ToolCall(
            node.text("name"), place.ordinal, node.text("effect"), written, node.loc,
            start_s, time.monotonic(), outcome.error, outcome.is_logged, path,
        )  # fmt: skip
        self._made.append((place.order, made))
        if type(outcome.value) is Failed and not _catches(node):
            raise outcome.value.error()  # out of the log of a run that handled it
        return outcome.value

    async def _make(
        self, node: Node, timeout_s: float | None, instead: Any,
        args: list[Any], kwargs: Mapping[str, Any],
    ) -> tuple[Any, str]:  # fmt: skip
        """The value that the program sees, and the error that it stands for, if it does."""
        tool = self.resolve(node)

        def call() -> Any:
            return tool.call(*args, **kwargs)

        made = call_on_loop if tool.is_async else call_on_thread
        value, error = await made(call, timeout_s)
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


def _arguments(run: Instance, node: Node) -> tuple[list[Any], dict[str, Any]]:
    """Copies of the arguments by place and by name; what a tool does to them is its own."""
    try:
        args = [plain_copy(arg) for arg in run.field(node, "args")]
    except (TypeError, ValueError) as error:
        raise ToolError(
            f"an argument of the tool {node.text('name')!r} is no plain data: {error}",
            hint="give it text, numbers, bools, and lists and dicts of them",
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
            f"the tool {node.text('name')!r} gave no {type_}, as its annotation says: {error}",
            hint="annotate what it returns: str, int, float, bool, list[str] or dict",
        ) from error


def _catches(node: Node) -> bool:
    return node.get("catches") == Lit(True)


async def call_tool(run: Instance, node: Node) -> tuple[Any]:
    """The handler of the op `tool`."""
    return (await run.tools.call(run, node),)


def outcome(run: Instance, node: Node) -> tuple[Any, ...]:
    """The handler of the op `outcome`."""
    value = run.raw_field(node, "value")
    if type(value) is Failed:
        return False, value.why, value.kind, list(value.classes)
    return True, "", "", []
