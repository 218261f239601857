"""The nodes of a graph that are needed, found backwards from a run's results.

Roots are nodes that make results (`publish`, `return`), end blocks, have effects, or decide which
requests are made (`join_first` and `winner` cut requests off; a map's calls publish streams of
their own). A block parameter is needed if a needed node uses it; only then are the operands that
jumps pass for the parameter needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sgc.ir.analysis.dependencies import Place, handed_on, jump_target, places
from sgc.ir.analysis.host_calls import has_effect
from sgc.ir.graph import Graph, Node, Operand, Ref, operand_refs
from sgc.ir.op_specs import Flag

_ROOTS = frozenset({Flag.LIVE, Flag.OUTPUT, Flag.CUTS, Flag.TERMINATOR})


class Liveness:
    """Finds needed nodes, in linear time. names: the needed values."""

    def __init__(self, graph: Graph) -> None:
        self._makers = {value.name: node for node in graph.nodes() for value in node.results}
        self._given: dict[str, list[Operand]] = {}  # operands passed to block parameters
        for param, arg in handed_on(graph):
            self._given.setdefault(param.name, []).append(arg)
        self.names: set[str] = set()
        roots = (node for node in graph.nodes() if _is_root(node) and jump_target(node) is None)
        self._need(name for node in roots for name in node.refs())
        self._keep_counts(graph)

    def is_needed(self, node: Node) -> bool:
        if Flag.HINT in node.flags and not node.results:
            # A prompt that no request uses need not be prefetched.
            return self.names.issuperset(node.refs())
        return _is_root(node) or any(value.name in self.names for value in node.results)

    def _need(self, names: Iterable[str]) -> None:
        queue = list(names)
        while queue:
            name = queue.pop()
            if name in self.names:
                continue
            self.names.add(name)
            if name in self._makers:
                queue += self._makers[name].refs()
            for operand in self._given.get(name, ()):
                queue += operand_refs(operand)

    def _keep_counts(self, graph: Graph) -> None:
        """Keeps the counts of tool calls: logs number the calls, so only the last calls may be
        dropped; in a graph of several blocks, all calls or none."""
        calls = [(place, node) for place, node in places(graph) if Flag.LOGGED in node.flags]
        last: Place | None = None
        for place, node in calls:
            if self.is_needed(node):
                last = place
        if last is not None:
            counted = calls if len(graph.blocks) > 1 else _until(calls, last)
            self._need(value.name for _, node in counted for value in node.results)


def _until(calls: list[tuple[Place, Node]], last: Place) -> Iterator[tuple[Place, Node]]:
    return ((place, node) for place, node in calls if place.index < last.index)


def _is_root(node: Node) -> bool:
    flags = node.flags
    if Flag.HOST in flags:
        return has_effect(node)
    # Streams that a call begins count in the paths of later streams.
    is_call = Flag.BEGINS in flags and isinstance(dict(node.fields).get("caller"), Ref)
    return is_call or not flags.isdisjoint(_ROOTS)
