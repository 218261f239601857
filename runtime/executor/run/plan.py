"""What of a graph's dataflow is the same in every run, worked out once.

Used by `Instance` for compiled programs; an interpreted one learns its nodes one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sgc.ir.graph import Node, Ref
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.run.stream_order import Births
from sgc.runtime.executor.run.winners import awaited


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes, how many values each waits for, and which wait for a value, by place."""

    nodes: tuple[Node, ...]
    n_missing: tuple[int, ...]
    waiting: Mapping[str, tuple[int, ...]]
    n_published: int
    has_maps: bool
    is_in_order: bool  # it returns, and publishes streams in the order in which they begin


class _Key:
    """Nodes by identity: comparing two graphs would cost what the plan saves."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.nodes is other.nodes

    def __hash__(self) -> int:
        return id(self.nodes)


def plan_of(nodes: tuple[Node, ...]) -> Plan:
    """The plan of a straight line of nodes, kept while it is used."""
    return _plan(_Key(nodes))


@lru_cache(maxsize=64)
def _plan(key: _Key) -> Plan:
    counts = []
    waiting: dict[str, list[int]] = {}
    for place, node in enumerate(key.nodes):
        missing = dict.fromkeys(awaited(node))
        counts.append(len(missing))
        for name in missing:
            waiting.setdefault(name, []).append(place)
    return Plan(
        nodes=key.nodes,
        n_missing=tuple(counts),
        waiting={name: tuple(places) for name, places in waiting.items()},
        n_published=sum(node.op == "publish" for node in key.nodes),
        has_maps=any(Flag.CALLS in node.flags for node in key.nodes),
        is_in_order=_is_in_order(key.nodes),
    )


def _is_in_order(nodes: tuple[Node, ...]) -> bool:
    births = Births()
    for node in nodes:
        births.note(node)
    numbers = [births.number_of(node) for node in nodes if node.op == "publish"]
    has_callers = any(isinstance(n.get("caller"), Ref) for n in nodes if n.op == "stream")
    return numbers == sorted(numbers) and not has_callers and nodes[-1].op == "return"
