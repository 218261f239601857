"""The order of a run's tool calls: which effect waits for which, and the place of each call.

Calls whose effect is not `pure` run one after the other, in the order of the program; pure calls
run as soon as their arguments have values.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sgc.ir.analysis.host_calls import has_effect
from sgc.ir.graph import Node
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.run.record import ToolCall

# A sort key of a run's tool calls: how many of the run's own calls came before; 0 for a call by a
# mapped call, 1 for an own call; the order among calls by mapped calls.
Order = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ToolMark:
    """The place of a map among the tool calls of its run. after: done when the previous effect is;
    done: set when the map ends, if later effects wait for it.
    """

    order: Order
    after: asyncio.Future[None] | None
    done: asyncio.Future[None] | None


@dataclass(frozen=True, slots=True)
class CallPlace:
    """The place of a tool call. ordinal: among the calls of the run, or of the mapped call that
    makes it; after: done when the previous effect is; done: set when this effect is done, None if
    the call is pure.
    """

    order: Order
    ordinal: int
    after: asyncio.Future[None] | None
    done: asyncio.Future[None] | None


class ToolOrder:
    """The places of the tool calls of one run. turn: held by one effect at a time, those of mapped
    calls included.
    """

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._places: dict[str, CallPlace] = {}  # by the value that a call returns
        self._n_calls = defaultdict[str, int](int)  # by the mapped call that they are made in
        self._n_mapped = 0
        self._last: asyncio.Future[None] | None = None
        self._made: list[tuple[Order, ToolCall]] = []

    def note(self, node: Node) -> None:
        """Notes a call that is submitted; called in the order of the program."""
        is_logged = Flag.LOGGED in node.flags
        path = node.text("path") if is_logged else ""
        done = asyncio.get_running_loop().create_future() if has_effect(node) else None
        order = self._mapped_order() if path else (self._n_calls[""], 1, 0)
        place = CallPlace(order, self._n_calls[path], self._last, done)
        self._places[node.results[0].name] = place
        self._n_calls[path] += is_logged
        self._last = done or self._last

    def next_ordinal(self, node: Node) -> int:
        """The ordinal of the next call that is noted where a node makes its calls."""
        return self._n_calls.get(node.text("path"), 0)

    def _mapped_order(self) -> Order:
        self._n_mapped += 1
        return self._n_calls[""], 0, self._n_mapped

    def mark(self, has_effects: bool) -> ToolMark:
        """Notes a map that is submitted. has_effects: later effects wait for it."""
        done = asyncio.get_running_loop().create_future() if has_effects else None
        mark = ToolMark(self._mapped_order(), self._last, done)
        self._last = done or self._last
        return mark

    def part(self, mark: ToolMark) -> ToolOrder:
        """Returns the order of one call of a map; its effects follow those before the map."""
        order = ToolOrder()
        order.turn, order._last = self.turn, mark.after
        return order

    def begin(self, node: Node) -> CallPlace:
        """Returns the place of a call that begins."""
        return self._places.pop(node.results[0].name)

    def add(self, place: CallPlace, call: ToolCall) -> None:
        """Adds a call that was made."""
        self._made.append((place.order, call))

    def take_in(self, mark: ToolMark, calls: Iterable[ToolCall]) -> None:
        """Adds the tool calls of a map's calls, in their order, when the map ends."""
        self._made.extend((mark.order, call) for call in calls)
        if mark.done is not None and not mark.done.done():
            mark.done.set_result(None)

    def made(self) -> tuple[ToolCall, ...]:
        """Returns the calls that were made, in the order of the program."""
        return tuple(call for _, call in sorted(self._made, key=lambda made: made[0]))
