"""What a run of a program can cost at most, whichever way it goes.

Counts every request of every block on the dearest way; a loop counts as often as its bound: a
counter of the language's own loops, or the bound of the jump that goes back. A map counts as often
as its list can be long; where that is not known, what one run of it costs is told beside. Read off
the graph; `sgc explain` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sgc.ir.analysis.dependencies import downward, flow_graph
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref
from sgc.ir.text.printer import operand_text

if TYPE_CHECKING:
    import networkx as nx

T = TypeVar("T")

MAX_MAPPED = 64  # told one by one: maps in maps multiply
MAX_WAYS = 10**9  # counted: tests in a row multiply
MAX_LOOPS = 8  # in each other, that are looked into


@dataclass(frozen=True, slots=True)
class Ceiling:
    """requests and tokens (generated ones) are infinite where a loop has no bound.

    n_unlimited: generations without `max_tokens` of their own, which have the run's; their tokens
    are not counted. ways: how many ways lead through the program, a loop being gone round once;
    MAX_WAYS stands for more, and loops in more than MAX_LOOPS for loops without a bound.
    mapped: what comes to that for each item of lists whose length is known only when it runs; of
    more than MAX_MAPPED nothing is told but that requests and tokens are infinite.
    """

    program: str
    requests: float
    tokens: float
    n_unlimited: int
    ways: int
    loops: int
    mapped: tuple[Mapped, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a map costs for each item of a list of unknown length, as often as it can run.

    lists: those whose lengths multiply it, the outermost first.
    """

    program: str
    lists: tuple[str, ...]
    requests: float
    tokens: float


def ceiling(graph: Graph) -> Ceiling:
    """The ceiling of a valid graph."""
    below: list[Ceiling] = []  # of the programs that it calls
    for number, each in enumerate(graph.called):
        below.append(_ceiling(each, below[:number]))
    return _ceiling(graph, below)


def _ceiling(graph: Graph, below: list[Ceiling]) -> Ceiling:
    import networkx as nx

    flow = flow_graph(graph)
    maps = _maps(graph, below)
    requests = _costs(graph, maps, _requests, lambda callee: callee.requests)
    tokens = _costs(graph, maps, _tokens, lambda callee: callee.tokens)
    mapped: list[Mapped] = []
    for number, block in enumerate(graph.blocks):
        if len(mapped) <= MAX_MAPPED and any(_is_told(node, maps) for node in block.nodes):
            times = _dearest(graph, flow, {n: float(n == number) for n in flow})
            mapped += [each for node in block.nodes for each in _mapped(node, maps, times)]
    is_told = len(mapped) <= MAX_MAPPED
    return Ceiling(
        program=graph.name,
        requests=_dearest(graph, flow, requests) if is_told else math.inf,
        tokens=_dearest(graph, flow, tokens) if is_told else math.inf,
        n_unlimited=sum(map(_is_unlimited, graph.all_nodes())),
        ways=_ways(flow),
        loops=sum(_is_loop(flow, part) for part in nx.strongly_connected_components(flow)),
        mapped=tuple(mapped) if is_told else (),
    )


_Maps = dict[int, tuple[str, Ceiling, int | None]]  # by node: what runs, its cost, how often


def _maps(graph: Graph, below: list[Ceiling]) -> _Maps:
    lengths: dict[str, int] = {}  # of lists, at most; where it is known before the program runs
    found: _Maps = {}
    for number in downward(graph):
        for node in graph.blocks[number].nodes:
            bound = _bound(lengths, node)
            if bound is not None:
                lengths.update((value.name, bound) for value in node.results)
            if node.op == "map":
                callee = below[_number(node.get("program"), 0)]
                found[id(node)] = callee.program, callee, bound
    return found


def _bound(lengths: Mapping[str, int], node: Node) -> int | None:
    """How long the lists that a node gives can be; None where only a run knows."""
    if node.op == "gen_n":
        return _number(node.get("n"), None)
    items = node.get("items") if node.op in ("list", "winner_values", "map") else None
    if isinstance(items, tuple):
        return len(items)
    return lengths.get(items.name) if isinstance(items, Ref) else None


def _number(operand: Operand, default: T) -> int | T:
    is_number = isinstance(operand, Lit) and type(operand.value) is int
    return operand.value if is_number else default  # type: ignore[union-attr,return-value]


def _costs(
    graph: Graph, maps: _Maps, own: Callable[[Node], int], of: Callable[[Ceiling], float]
) -> dict[int, float]:
    """What each block costs, its maps over lists of known length among it."""
    costs: dict[int, float] = {}
    for number, block in enumerate(graph.blocks):
        costs[number] = float(sum(map(own, block.nodes)))
        for node in block.nodes:
            _, callee, bound = maps.get(id(node), ("", None, None))
            if callee is not None and bound is not None:
                costs[number] += _times(bound, of(callee))
    return costs


def _is_told(node: Node, maps: _Maps) -> bool:
    """Whether a node is a map of which something is told beside."""
    _, callee, bound = maps.get(id(node), ("", None, None))
    return callee is not None and (bound is None or bool(callee.mapped))


def _mapped(node: Node, maps: _Maps, times: float) -> Iterator[Mapped]:
    """What of a map is told beside, because a list's length is not known."""
    if id(node) not in maps:
        return
    program, callee, bound = maps[id(node)]
    lists: tuple[str, ...] = ()
    if bound is None:
        lists = (operand_text(node.get("items")),)
        costs = _times(times, callee.requests), _times(times, callee.tokens)
        yield Mapped(program, lists, *costs)
    for each in callee.mapped:
        n = times if bound is None else _times(times, bound)
        costs = _times(n, each.requests), _times(n, each.tokens)
        yield Mapped(each.program, (*lists, *each.lists), *costs)


def _times(n: float, cost: float) -> float:
    """Nothing, any number of times, is nothing."""
    return n * cost if n and cost else 0.0


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


def _dearest(
    graph: Graph, flow: nx.DiGraph[int], costs: Mapping[int, float], depth: int = 0
) -> float:
    """The cost of the dearest way through a part of the program. depth: loops that it lies in."""
    import networkx as nx

    condensed = nx.condensation(flow)
    best: dict[int, float] = {}
    for part in reversed(list(nx.topological_sort(condensed))):
        after = max((best[next_] for next_ in condensed.successors(part)), default=0.0)
        best[part] = after + _cost(graph, flow, condensed.nodes[part]["members"], costs, depth)
    return max(best.values(), default=0.0)


def _cost(
    graph: Graph, flow: nx.DiGraph[int], part: set[int], costs: Mapping[int, float], depth: int
) -> float:
    """What a loop costs, all its turns; or a block that is in none."""
    if not _is_loop(flow, part):
        return costs[next(iter(part))]
    if not any(costs[block] for block in part):
        return 0
    bounded = turns_of(graph, part) if depth < MAX_LOOPS else None
    if bounded is None:
        return math.inf
    block, turns = bounded
    inside = flow.subgraph(part).copy()
    inside.remove_edges_from(list(inside.out_edges(block)))
    return turns * _dearest(graph, inside, costs, depth + 1)


def turns_of(graph: Graph, part: set[int]) -> tuple[int, int] | None:
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
            if isinstance(given, Lit):
                return True
            if isinstance(given, Ref) and given.name not in seen:
                seen.add(given.name)
                queue.append(given.name)
    return False


def _ways(flow: nx.DiGraph[int]) -> int:
    import networkx as nx

    condensed = nx.condensation(flow)
    found: dict[int, int] = {}
    for part in reversed(list(nx.topological_sort(condensed))):
        ways = sum(found[next_] for next_ in condensed.successors(part)) or 1
        found[part] = min(ways, MAX_WAYS)
    return found[condensed.graph["mapping"][0]]
