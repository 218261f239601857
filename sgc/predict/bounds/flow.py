"""The control flow of a program's blocks: their order, the loops, and how often loops run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from sgc.ir.analysis.dependencies import Definition, definitions, flow_graph
from sgc.ir.graph import Graph, Lit, Node, Operand, Ref

MAX_PATHS = 10**9  # the most that are counted: consecutive tests multiply
MAX_CHAIN = 64  # the most values that a counter passes through in its loop

Parts = Sequence[tuple[set[int], bool]]


@dataclass(frozen=True, slots=True)
class Counter:
    """A block of a loop that adds to a value, and stays in the loop only while it is below a limit.
    begins: the loop parameters that may hold the value's start.
    """

    block: int
    limit: Operand
    begins: frozenset[str]


class Flow:
    """The blocks of one program, by number."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers = {block.name: number for number, block in enumerate(graph.blocks)}
        self._edges = flow_graph(graph)
        self._parts: dict[tuple[frozenset[int], int | None], Parts] = {}
        self._counters: dict[frozenset[int], Sequence[Counter]] = {}

    @cached_property
    def definitions(self) -> Mapping[str, Definition]:
        return definitions(self.graph)

    @cached_property
    def maps(self) -> Mapping[int, int]:
        """The number of each map, by the node's id."""
        found = (node for node in self.graph.nodes() if node.op == "map")
        return {id(node): number for number, node in enumerate(found)}

    @cached_property
    def from_zero(self) -> frozenset[str]:
        """The integers that are never below 0: literals, lengths, and their sums."""
        made_of = self._sums()
        makes: dict[str, list[str]] = {}
        below: list[str] = []
        for name, operands in made_of.items():
            for operand in operands:
                if isinstance(operand, Ref) and operand.name in made_of:
                    makes.setdefault(operand.name, []).append(name)
                elif not _is_from_zero(operand):
                    below.append(name)
        found = set(made_of)
        while below:
            name = below.pop()
            if name in found:
                found.remove(name)
                below += makes.get(name, [])
        return frozenset(found)

    def _sums(self) -> dict[str, Sequence[Operand]]:
        """The operands of each integer and parameter; lengths have none."""
        found: dict[str, Sequence[Operand]] = {}
        for block in self.graph.blocks:
            for node in block.nodes:
                if node.op == "compute" and node.text("fn") in ("int", "add", "len"):
                    args = node.get("args")
                    of = args if isinstance(args, tuple) and node.text("fn") != "len" else ()
                    found[node.results[0].name] = of
            last = block.nodes[-1]
            if last.op == "jump":
                given = last.get("args")
                params = self.graph.blocks[self.numbers[last.text("target")]].params
                for param, arg in zip(
                    params, given if isinstance(given, tuple) else (), strict=True
                ):
                    found[param.name] = (*found.get(param.name, ()), arg)
        return found

    def after(self, number: int) -> set[int]:
        """The blocks that may run right after a block."""
        return set(self._edges.successors(number))

    def parts(self, blocks: frozenset[int], barrier: int | None) -> Parts:
        """The loops among some blocks, and the blocks in no loop, in execution order, each with
        whether it is a loop. Edges out of the barrier are ignored.
        """
        key = (blocks, barrier)
        if key not in self._parts:
            inside = nx.DiGraph()
            inside.add_nodes_from(blocks)
            for number in blocks - {barrier}:
                following = self._edges.successors(number)
                inside.add_edges_from((number, each) for each in following if each in blocks)
            # Tarjan's algorithm finds them in reverse order.
            found = reversed(list(nx.strongly_connected_components(inside)))
            self._parts[key] = [(each, _is_loop(inside, each)) for each in found]
        return self._parts[key]

    def n_loops(self) -> int:
        """The number of outermost loops."""
        whole = frozenset(range(len(self.graph.blocks)))
        return sum(is_loop for _, is_loop in self.parts(whole, None))

    def n_paths(self) -> int:
        """The number of paths that take each loop once, up to MAX_PATHS."""
        condensed = nx.condensation(self._edges)
        found: dict[int, int] = {}
        for part in reversed(list(nx.topological_sort(condensed))):
            n_after = sum(found[each] for each in condensed.successors(part)) or 1
            found[part] = min(n_after, MAX_PATHS)
        return found[condensed.graph["mapping"][0]]

    def counters(self, part: set[int]) -> Sequence[Counter]:
        """The counters of a loop."""
        key = frozenset(part)
        if key not in self._counters:
            found = (self._counter(number, part) for number in sorted(part))
            self._counters[key] = [each for each in found if each is not None]
        return self._counters[key]

    def _counter(self, number: int, part: set[int]) -> Counter | None:
        last = self.graph.blocks[number].nodes[-1]
        if last.op != "branch" or self.numbers[last.text("orelse")] in part:
            return None
        made = {
            value.name: node for node in self.graph.blocks[number].nodes for value in node.results
        }
        name, limit = _arguments(made.get(_name(last.get("test"))), "lt")
        added = made.get(_name(name))
        if added is None or (isinstance(limit, Ref) and limit.name in self._made_in(part)):
            return None
        begins = self._begins(part, number, added)
        return None if begins is None else Counter(number, limit, begins)

    def _made_in(self, part: set[int]) -> dict[str, tuple[int, Node | int]]:
        """What a loop defines: the block, and the node or parameter index."""
        found: dict[str, tuple[int, Node | int]] = {}
        for number in part:
            block = self.graph.blocks[number]
            found |= {param.name: (number, place) for place, param in enumerate(block.params)}
            for node in block.nodes:
                found |= {value.name: (number, node) for value in node.results}
        return found

    def _begins(self, part: set[int], counting: int, added: Node) -> frozenset[str] | None:
        """The parameters that hold a counter's start; None unless the counter grows in each turn.
        Each value that it passes through must have been made since the counting block ran last, or
        it would be one of an earlier turn.
        """
        made, fresh = self._made_in(part), added.results[0].name
        begins: set[str] = set()
        seen = {fresh}
        queue = [(counting, _step(added))]
        while queue:
            used_in, operand = queue.pop()
            name = _name(operand)
            if name not in made or len(seen) > MAX_CHAIN:
                return None  # it starts anew in each turn
            block, how = made[name]
            if name != fresh and used_in in self._past(part, counting, block):
                return None
            if name in seen:
                continue
            seen.add(name)
            if isinstance(how, Node):
                queue.append((block, _step(how)))
                continue
            begins.add(name)
            for number in part:
                jump = self.graph.blocks[number].nodes[-1]
                if jump.op == "jump" and self.numbers[jump.text("target")] == block:
                    args = jump.get("args")
                    queue.append((number, args[how] if isinstance(args, tuple) else Lit(None)))
        return frozenset(begins)

    def _past(self, part: set[int], counting: int, block: int) -> set[int]:
        """The blocks reachable from the counting block without passing through `block`."""
        found: set[int] = set()
        queue = [counting]
        while queue:
            after = (self.after(queue.pop()) & part) - found - {block}
            found |= after
            queue += after
        return found


def _is_loop(edges: nx.DiGraph[int], part: set[int]) -> bool:
    (first, *rest) = part
    return bool(rest) or edges.has_edge(first, first)


def _is_from_zero(operand: Operand) -> bool:
    return isinstance(operand, Lit) and type(operand.value) is int and operand.value >= 0


def _name(operand: Operand | None) -> str:
    return operand.name if isinstance(operand, Ref) else ""


def _arguments(node: Node | None, fn: str) -> tuple[Operand, Operand]:
    """The arguments of a call of `fn` with two; (None, None) for another node."""
    args = node.get("args") if node is not None and node.op == "compute" else ()
    if node is None or not isinstance(args, tuple) or len(args) != 2 or node.text("fn") != fn:
        return Lit(None), Lit(None)
    return args[0], args[1]


def _step(node: Node) -> Operand:
    """The operand that a node adds a positive number to; Lit(None) if it does not."""
    one, other = _arguments(node, "add")
    is_step = isinstance(other, Lit) and type(other.value) is int and other.value > 0
    return one if is_step else Lit(None)
