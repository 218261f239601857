"""Which nodes of a graph anything needs, found backwards from what a run is for.

Roots are what gives results (`publish`, `return`), ends blocks, has effects, or decides how much
is asked (`join_first` and `winner` cut requests off; a map's calls publish streams of their own).
A block's parameter is needed if something that is needed uses it; what jumps hand on for it is
needed only then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sgc.ir.analysis.dependencies import Place, places
from sgc.ir.graph import Graph, Node, Operand, Ref, operand_refs
from sgc.passes.rewriting import jump_args

_ROOTS = frozenset({"publish", "join_first", "winner", "map"})


class Liveness:
    """names: the values that are needed. Linear in the graph."""

    def __init__(self, graph: Graph) -> None:
        self._makers = {value.name: node for node in graph.nodes() for value in node.results}
        self._given: dict[str, list[Operand]] = {}  # what a block's parameter may stand for
        self._params = {block.name: block.params for block in graph.blocks}
        self.names: set[str] = set()
        roots = []
        for place, node in places(graph):
            if node.op == "jump":
                for param, arg in zip(
                    self._params[node.text("target")], jump_args(node), strict=True
                ):
                    self._given.setdefault(param.name, []).append(arg)
            elif _is_root(node):
                roots.append((place, node))
        self._need(name for _, node in roots for name in node.refs())
        self._keep_counts(graph)

    def is_needed(self, node: Node) -> bool:
        if node.op == "prefetch":  # what is not asked with need not be fetched
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
        """Calls of tools are counted in logs, so that only the last ones can go: in several blocks
        all or none."""
        calls = [(place, node) for place, node in places(graph) if node.op == "tool"]
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
    if node.op == "tool":
        return node.text("effect") != "pure"
    if node.op == "stream":  # those that a call begins are counted in the paths of the next ones
        return isinstance(node.get("caller"), Ref)
    return node.op in _ROOTS or node.is_terminator
