"""Analyses of a graph: definitions, uses, dependencies, the tree of prompts, control flow.

All run in linear time, and also on graphs that break the verifier's rules unless they say
otherwise. They change no graph and cache nothing. The verifier, the passes and the dumps call them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sgc.ir.graph import Graph, Lit, Node, Operand, Value, operand_refs

if TYPE_CHECKING:
    import networkx as nx  # imported where it is used, since it takes a tenth of a second


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a node or definition: the block's number, and the node's number in the block.

    Block -1 is the program's head, index -1 the block's head; there `node` is None.
    """

    block: int
    index: int
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    value: Value
    place: Place


def places(graph: Graph) -> Iterator[tuple[Place, Node]]:
    """Every node with its place, in order."""
    for block, content in enumerate(graph.blocks):
        for index, node in enumerate(content.nodes):
            yield Place(block, index, node), node


def all_definitions(graph: Graph) -> Iterator[Definition]:
    """Every definition in order; a valid graph defines each name once."""
    for param in graph.params:
        yield Definition(param.value, Place(-1, -1))
    for block, content in enumerate(graph.blocks):
        for value in content.params:
            yield Definition(value, Place(block, -1))
    for place, node in places(graph):
        for value in node.results:
            yield Definition(value, place)


def definitions(graph: Graph) -> dict[str, Definition]:
    """The definition of each value; the first one if there are several."""
    found: dict[str, Definition] = {}
    for definition in all_definitions(graph):
        found.setdefault(definition.value.name, definition)
    return found


def uses(graph: Graph) -> dict[str, list[Place]]:
    """The nodes that use each value, in order; a node with several uses occurs several times."""
    found: dict[str, list[Place]] = {}
    for place, node in places(graph):
        for name in node.refs():
            found.setdefault(name, []).append(place)
    return found


def dependencies(graph: Graph) -> nx.DiGraph[int]:
    """The graph of nodes, numbered over all blocks, with an edge from each node to its users.

    Nodes have the attribute `node`, edges have `values`: the names that flow along them. An edge of
    stream states orders the nodes of a stream; other edges are dependencies between streams.
    """
    import networkx as nx

    dag: nx.DiGraph[int] = nx.DiGraph()
    producer: dict[str, int] = {}
    for number, node in enumerate(graph.nodes()):
        dag.add_node(number, node=node)
        producer.update((value.name, number) for value in node.results)
    for number, node in enumerate(graph.nodes()):
        for name in dict.fromkeys(node.refs()):
            if name in producer:
                _add_edge(dag, producer[name], number, name)
    return dag


def _add_edge(dag: nx.DiGraph[int], start: int, end: int, name: str) -> None:
    if dag.has_edge(start, end):
        dag.edges[start, end]["values"].append(name)
    else:
        dag.add_edge(start, end, values=[name])


def consumed(node: Node) -> list[str]:
    """The stream states that a node consumes; for a jump, all values that it passes."""
    consuming = node.spec.consuming
    taken = [op for name, op in node.fields if name in consuming]
    # A jump passes values of any type; callers know which of them are streams.
    return [name for operand in taken for name in operand_refs(operand)]


@dataclass(frozen=True)
class Tree:
    """A forest over names, without names that no root reaches (a cycle in a malformed graph)."""

    children: dict[str, list[str]]
    roots: tuple[str, ...]

    @cached_property
    def parents(self) -> dict[str, str]:
        """The parent of each name that a root reaches; the first one found if there are several."""
        parents: dict[str, str] = {}
        seen = set(self.roots)
        queue = list(self.roots)
        for parent in queue:
            for child in self.children.get(parent, ()):
                if child not in seen:
                    seen.add(child)
                    parents[child] = parent
                    queue.append(child)
        return parents

    @cached_property
    def root_of(self) -> dict[str, str]:
        """The root of each name."""
        found = {root: root for root in self.roots}
        for name, parent in self.parents.items():  # a parent before its children
            found[name] = found[parent]
        return found

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """The preorder numbers of each name and its descendants, as a half-open range."""
        starts: dict[str, int] = {}
        spans: dict[str, tuple[int, int]] = {}
        stack = [(root, False) for root in reversed(self.roots)]
        while stack:
            name, is_done = stack.pop()
            if is_done:
                spans[name] = (starts[name], len(starts))
            elif name not in starts:
                starts[name] = len(starts)
                stack.append((name, True))
                stack += [(child, False) for child in reversed(self.children.get(name, []))]
        return spans

    def __contains__(self, name: str) -> bool:
        return name in self._spans

    def is_at_or_above(self, upper: str, lower: str) -> bool:
        """Whether `upper` is `lower` or an ancestor of it; in constant time."""
        if upper not in self._spans or lower not in self._spans:
            return False
        first, end = self._spans[upper]
        return first <= self._spans[lower][0] < end

    def path(self, name: str) -> list[str]:
        """The names from the root down to a name."""
        steps = [name]
        while steps[-1] in self.parents:
            steps.append(self.parents[steps[-1]])
        return steps[::-1]


def prompt_tree(graph: Graph) -> Tree:
    """The tree of stream states: which prompt extends which.

    A fork's children branch; its first result is the trunk. Roots are streams and the
    stream states that blocks take as parameters.
    """
    children: dict[str, list[str]] = {}
    roots = [v.name for block in graph.blocks for v in block.params if v.type.is_stream]
    for node in graph.nodes():
        states = [value.name for value in node.results if value.type.is_stream]
        parents = consumed(node) if states else []
        if parents:
            children.setdefault(parents[0], []).extend(states)
        else:
            roots += states
    return Tree(children, tuple(dict.fromkeys(roots)))


_TARGETS = ("target", "then", "orelse", "targets", "default")  # fields that name blocks


def successors(node: Node) -> tuple[str, ...]:
    """The blocks that a terminator can continue with, each once, in the order of its fields."""
    if not node.is_terminator:
        return ()
    found: list[str] = []
    for name, operand in node.fields:
        if name in _TARGETS:
            parts = operand if isinstance(operand, tuple) else (operand,)
            found += [str(part.value) for part in parts if isinstance(part, Lit) and part.value]
    return tuple(dict.fromkeys(found))


def jump_target(node: Node) -> str | None:
    """The target block of a jump; None for other nodes."""
    return node.text("target") if node.op == "jump" else None


def handed_on(graph: Graph) -> Iterator[tuple[Value, Operand]]:
    """Pairs of a block parameter and an operand that a jump passes for it; for valid graphs."""
    params = {block.name: block.params for block in graph.blocks}
    for node in graph.nodes():
        if (target := jump_target(node)) is not None:
            yield from zip(params[target], jump_args(node), strict=True)


def jump_args(jump: Node) -> tuple[Operand, ...]:
    """The operands that a jump passes."""
    args = jump.get("args")
    assert isinstance(args, tuple)
    return args


def downward(graph: Graph) -> list[int]:
    """The numbers of the blocks, each after its dominators; unreachable blocks come last."""
    numbers = {block.name: number for number, block in enumerate(graph.blocks)}
    done: list[int] = []
    seen: set[int] = set()
    for first in range(len(graph.blocks)):
        stack = [] if first in seen else [(first, False)]
        found: list[int] = []
        while stack:
            number, is_left = stack.pop()
            if is_left:
                found.append(number)
            elif number not in seen:
                seen.add(number)
                stack.append((number, True))
                nodes = graph.blocks[number].nodes
                names = successors(nodes[-1]) if nodes else ()
                stack += [(numbers[name], False) for name in names if name in numbers]
        done += reversed(found)
    return done


def flow_graph(graph: Graph) -> nx.DiGraph[int]:
    """The control-flow graph: blocks by number, with an edge from each to its successors."""
    import networkx as nx

    numbers = {block.name: number for number, block in enumerate(graph.blocks)}
    flow: nx.DiGraph[int] = nx.DiGraph()
    flow.add_nodes_from(range(len(graph.blocks)))
    for number, block in enumerate(graph.blocks):
        for name in successors(block.nodes[-1]) if block.nodes else ():
            if name in numbers:
                flow.add_edge(number, numbers[name])
    return flow
