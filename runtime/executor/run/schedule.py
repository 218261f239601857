"""Which nodes of a run are ready: each waits until its operands have values.

A `Plan` holds what the nodes of a compiled program wait for, which is the same in every run. The
nodes of an interpreted program are added one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sgc.ir.analysis.live_order import is_ordered, reads_futures
from sgc.ir.graph import Node, Ref
from sgc.ir.op_specs import Flag
from sgc.ir.ops import ops_with
from sgc.runtime.executor.functions.once import made_once
from sgc.runtime.executor.run.cuts import awaited
from sgc.runtime.executor.run.stream_order import StreamOrder
from sgc.runtime.executor.run.values import Values

# Ops whose place in the order of the program matters.
NOTED = ops_with(Flag.HOST) | {"publish", "stream", "fork", "open_fork", "child", "map"}


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes, how many values each waits for, and which nodes wait for each value."""

    nodes: tuple[Node, ...]
    n_missing: tuple[int, ...]
    waiting: Mapping[str, tuple[int, ...]]
    noted: tuple[Node, ...]  # nodes whose place a run notes before they start
    is_in_order: bool  # whether it returns, and publishes streams in the order in which they begin


@made_once
def plan_of(nodes: tuple[Node, ...]) -> Plan:
    """Returns the plan of a straight line of nodes."""
    counts = []
    waiting: dict[str, list[int]] = {}
    performed: tuple[str, ...] = ()  # the value of the last `perform`, which the next one follows
    late: list[str] = []  # values of calls that may still run, which code may read
    for place, node in enumerate(nodes):
        missing = dict.fromkeys(awaited(node))
        if is_ordered(node):
            missing |= dict.fromkeys(performed)
            performed = (node.results[0].name,)
            if late and reads_futures(node.text("code")):
                missing |= dict.fromkeys(late)
        elif node.op == "future":
            late += node.refs()
        counts.append(len(missing))
        for name in missing:
            waiting.setdefault(name, []).append(place)
    return Plan(
        nodes=nodes,
        n_missing=tuple(counts),
        waiting={name: tuple(places) for name, places in waiting.items()},
        noted=tuple(node for node in nodes if node.op in NOTED),
        is_in_order=_is_in_order(nodes),
    )


def _is_in_order(nodes: tuple[Node, ...]) -> bool:
    order = StreamOrder()
    for node in nodes:
        order.note(node)
    numbers = [order.number_of(node) for node in nodes if node.op == "publish"]
    has_callers = any(isinstance(n.get("caller"), Ref) for n in nodes if n.op == "stream")
    is_open = any(node.op == "open_fork" for node in nodes)
    is_plain = not has_callers and not is_open
    return numbers == sorted(numbers) and is_plain and nodes[-1].op == "return"


class Schedule:
    """The unfinished nodes of one run. ready: those that can start, in order."""

    def __init__(self, values: Values) -> None:
        self.ready: deque[Node] = deque()
        self.n_open = 0  # unfinished nodes, and other holds that keep the run open
        self._by_name = values.by_name
        self._blocked: dict[str, list[_Pending]] = {}  # by the values that they wait for
        self._plan: Plan | None = None
        self._n_missing: list[int] = []  # of the plan's nodes

    def add(self, node: Node, names: Iterable[str]) -> None:
        """Adds a node whose operands are defined by earlier nodes. names: what it waits for."""
        self.n_open += 1
        by_name = self._by_name
        missing = {name for name in names if name not in by_name}
        if missing:
            pending = _Pending(node, len(missing))
            for name in missing:
                self._blocked.setdefault(name, []).append(pending)
        else:
            self.ready.append(node)

    def add_all(self, plan: Plan) -> None:
        """Adds all nodes of a compiled program; called once."""
        self.n_open += len(plan.nodes)
        self._plan, self._n_missing = plan, list(plan.n_missing)
        for place, count in enumerate(plan.n_missing):
            if count == 0:
                self.ready.append(plan.nodes[place])
        for name in list(self._by_name):
            self.came(name)

    def came(self, name: str) -> None:
        """Notes that a value is defined; nodes that waited only for it become ready."""
        if self._plan is not None:
            counts = self._n_missing
            for place in self._plan.waiting.get(name, ()):
                counts[place] -= 1
                if counts[place] == 0:
                    self.ready.append(self._plan.nodes[place])
        elif self._blocked:
            for pending in self._blocked.pop(name, ()):
                pending.n_missing -= 1
                if pending.n_missing == 0:
                    self.ready.append(pending.node)

    def clear(self) -> None:
        """Forgets all nodes when the run has failed."""
        self._blocked.clear()
        self.ready.clear()


class _Pending:
    """A node that waits for some of its operands."""

    __slots__ = ("n_missing", "node")

    def __init__(self, node: Node, n_missing: int) -> None:
        self.node = node
        self.n_missing = n_missing
