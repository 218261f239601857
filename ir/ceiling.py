"""What a run of a program can cost at most, whichever way it goes.

Counts every request of every block on the dearest way; a loop counts as often as its bound: a
counter of the language's own loops, or the bound of the jump that goes back. Read off the graph;
`sgc explain` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgc.ir.analysis import flow_graph
from sgc.ir.graph import Block, Graph, Lit, Node, Ref

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Ceiling:
    """requests and tokens (generated ones) are infinite where a loop has no bound.

    n_unlimited: generations without `max_tokens` of their own, which have the run's; their tokens
    are not counted. ways: how many ways lead through the program, a loop being gone round once.
    """

    requests: float
    tokens: float
    n_unlimited: int
    ways: int
    loops: int


def ceiling(graph: Graph) -> Ceiling:
    """The ceiling of a valid graph."""
    import networkx as nx

    flow = flow_graph(graph)
    requests = {n: sum(map(_requests, block.nodes)) for n, block in enumerate(graph.blocks)}
    tokens = {n: sum(map(_tokens, block.nodes)) for n, block in enumerate(graph.blocks)}
    unlimited = [node for node in graph.nodes() if _is_unlimited(node)]
    return Ceiling(
        requests=_dearest(graph, flow, requests),
        tokens=_dearest(graph, flow, tokens),
        n_unlimited=len(unlimited),
        ways=_ways(flow),
        loops=sum(_is_loop(flow, part) for part in nx.strongly_connected_components(flow)),
    )


def _requests(node: Node) -> int:
    if node.op in ("gen", "select"):
        return 1
    if node.op == "gen_n":
        n = node.get("n")
        return n.value if isinstance(n, Lit) and isinstance(n.value, int) else 1
    # A fork's trunk is committed before its children.
    return int(node.op == "fork" and node.get("n") != Lit(1))


def _tokens(node: Node) -> int:
    if node.op not in ("gen", "gen_n"):
        return 0
    limit = node.get("max_tokens")
    each = limit.value if isinstance(limit, Lit) and isinstance(limit.value, int) else 0
    return each * _requests(node)


def _is_unlimited(node: Node) -> bool:
    if node.op not in ("gen", "gen_n"):
        return False
    limit = node.get("max_tokens")
    return isinstance(limit, Ref) or (isinstance(limit, Lit) and limit.value is None)


# -- ways -----------------------------------------------------------------------------------


def _is_loop(flow: nx.DiGraph[int], part: set[int]) -> bool:
    (first, *rest) = part
    return bool(rest) or flow.has_edge(first, first)


def _dearest(graph: Graph, flow: nx.DiGraph[int], costs: Mapping[int, int]) -> float:
    """The cost of the dearest way through a part of the program."""
    import networkx as nx

    condensed = nx.condensation(flow)
    best: dict[int, float] = {}
    for part in reversed(list(nx.topological_sort(condensed))):
        after = max((best[next_] for next_ in condensed.successors(part)), default=0.0)
        best[part] = after + _cost(graph, flow, condensed.nodes[part]["members"], costs)
    return max(best.values(), default=0.0)


def _cost(graph: Graph, flow: nx.DiGraph[int], part: set[int], costs: Mapping[int, int]) -> float:
    """What a loop costs, all its turns; or a block that is in none."""
    if not _is_loop(flow, part):
        return costs[next(iter(part))]
    if not any(costs[block] for block in part):
        return 0
    bounded = _bounded(graph, part)
    if bounded is None:
        return math.inf
    block, turns = bounded
    inside = flow.subgraph(part).copy()
    inside.remove_edges_from(list(inside.out_edges(block)))
    return turns * _dearest(graph, inside, costs)


def _bounded(graph: Graph, part: set[int]) -> tuple[int, int] | None:
    """A block that a run comes through so many times at most; other loops in it are its own."""
    for block in sorted(part):
        counter = _counter(graph.blocks[block])
        if counter is not None and not _is_reset(graph, part, counter[0]):
            return block, counter[1]
    for block in sorted(part):
        last = graph.blocks[block].nodes[-1]
        jump = last.get("bound") if last.op == "jump" else None
        if isinstance(jump, Lit) and isinstance(jump.value, int) and jump.value:
            return block, jump.value + 1
    return None


def _counter(block: Block) -> tuple[str, int] | None:
    """What a block counts and up to what: it adds one to a value, and tests `lt` a number."""
    last = block.nodes[-1]
    if last.op != "branch":
        return None
    by_name = {value.name: node for node in block.nodes for value in node.results}
    test = by_name.get(next(last.refs()))
    if test is None or test.op != "compute" or test.text("fn") != "lt":
        return None
    args = test.get("args")
    assert isinstance(args, tuple)
    added = by_name.get(args[0].name) if isinstance(args[0], Ref) else None
    bound = args[1].value if isinstance(args[1], Lit) else None
    if added is None or added.op != "compute" or added.text("fn") != "add":
        return None
    counted = next(added.refs(), None)
    return (counted, bound) if counted is not None and isinstance(bound, int) else None


def _is_reset(graph: Graph, part: set[int], counted: str) -> bool:
    """Whether a counter begins anew inside a loop: then it is of a loop within that."""
    blocks = [graph.blocks[number] for number in part]
    made = {value.name: node for block in blocks for node in block.nodes for value in node.results}
    places = {
        param.name: (block.name, place)
        for block in blocks
        for place, param in enumerate(block.params)
    }
    queue, seen = [counted], {counted}
    while queue:
        name = queue.pop()
        node = made.get(name)
        if node is not None:
            if node.text("fn") != "add":
                return True
            continue
        if name not in places:
            continue  # from outside the loop
        target, place = places[name]
        for block in blocks:
            jump = block.nodes[-1]
            args = jump.get("args") if jump.op == "jump" and jump.text("target") == target else ()
            given = args[place] if isinstance(args, tuple) and args else None
            if isinstance(given, Ref) and given.name not in seen:
                seen.add(given.name)
                queue.append(given.name)
    return False


def _ways(flow: nx.DiGraph[int]) -> int:
    import networkx as nx

    condensed = nx.condensation(flow)
    found: dict[int, int] = {}
    for part in reversed(list(nx.topological_sort(condensed))):
        found[part] = sum(found[next_] for next_ in condensed.successors(part)) or 1
    return found[condensed.graph["mapping"][0]]
