"""Shares equal nodes: an equal value is computed once, and an equal generation requested once.

This is value numbering: surely equal values get the same number; a stream's state is numbered by
its history, a pure node by its operands. A deterministic generation (greedy by a literal, or with
the same literal seed; a `select` without a temperature) with the same history as an earlier one
becomes a `share` of that one; an equal pure node is dropped. The earlier node is in the same block
or in a block that dominates it. Equality that depends on arguments or a run's options is left to
run time (`executor/keep/single_flight.py`). Programs with a join that cuts children off are left
alone: the first node's child might be cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref, make_node
from sgc.ir.op_specs import Flag
from sgc.ir.rules.graph import Context
from sgc.ir.sampling import GREEDY_BELOW
from sgc.ir.types import Kind
from sgc.passes.base import Pass, Preserves
from sgc.passes.rewriting import renamed, with_blocks, with_nodes

# A reader may change lists and JSON, so each reader keeps its own.
_CHANGEABLE = frozenset({Kind.LIST, Kind.JSON})

Key = tuple[Hashable, ...]


def share_equal(graph: Graph) -> Graph:
    if any(Flag.CUTS in node.flags for node in graph.nodes()):
        return graph
    sharing = _Sharing(graph)
    blocks = list(graph.blocks)
    below = Context(graph).dominators.children
    steps: list[tuple[int, int | None]] = [(0, None)]  # a block, or how many keys to keep after it
    while steps:
        number, n_before = steps.pop()
        if n_before is not None:
            sharing.forget(n_before)
            continue
        steps.append((number, len(sharing.order)))
        steps += [(int(each), None) for each in reversed(below.get(str(number), []))]
        blocks[number] = sharing.block(blocks[number])
    return with_blocks(graph, blocks)


class _Sharing:
    """What is known at one block: the numbers of values, and the first node with each key."""

    def __init__(self, graph: Graph) -> None:
        self._numbers: dict[str, int] = {}
        self._n_numbers = 1  # 0 is the empty history
        self._first: dict[Key, Node] = {}
        self.order: list[Key] = []  # the keys of `_first`, in order of insertion
        self._names: dict[str, Operand] = {}  # what replaces dropped values
        for param in graph.params:
            self._number_anew(param.value.name)

    def forget(self, n_before: int) -> None:
        """Keeps the first `n_before` nodes; the others need not dominate the next block."""
        for key in self.order[n_before:]:
            del self._first[key]
        del self.order[n_before:]

    def block(self, block: Block) -> Block:
        for param in block.params:
            self._number_anew(param.name)
        made = (self._shared(renamed(node, self._names)) for node in block.nodes)
        return with_nodes(block, [node for node in made if node is not None])

    def _shared(self, node: Node) -> Node | None:
        """The node's replacement; None for a dropped node."""
        flags = node.flags
        if Flag.EMPTY in flags:
            self._numbers[node.results[0].name] = 0
        elif Flag.SAME in flags:
            for value in node.results:
                self._numbers[value.name] = self._number_of(node.get("stream"))
        elif node.op == "share":
            self._number_share(node)
        elif Flag.ASKS in flags and _is_deterministic(node):
            return self._generation(node)
        elif Flag.APPENDS in flags and Flag.STOCHASTIC not in flags:
            self._first_of(node)  # its operands determine what it appends
        elif Flag.PURE in flags and Flag.TIMED not in flags:
            return self._value(node)
        else:
            for value in node.results:
                self._number_anew(value.name)
        return node

    def _generation(self, node: Node) -> Node:
        if dict(node.fields).get("hidden") == Lit(True) and self._key(node) in self._first:
            for value in node.results:  # a `share` would not be hidden
                self._number_anew(value.name)
            return node
        first = self._first_of(node)
        if first is None:
            return node
        end, given = (Ref(result.name) for result in first.results)
        own = {name: operand for name, operand in node.fields if name in ("stream", "name")}
        begin = first.get("stream")
        return make_node("share", node.results, node.loc, **own, start=begin, end=end, value=given)

    def _value(self, node: Node) -> Node | None:
        first = self._first_of(node)
        if first is None or any(value.type.kind in _CHANGEABLE for value in node.results):
            return node
        for value, known in zip(node.results, first.results, strict=True):
            self._names[value.name] = Ref(known.name)
        return None

    def _first_of(self, node: Node) -> Node | None:
        """The first equal node, whose results' numbers the node gets; None if it is the first."""
        key = self._key(node)
        first = self._first.setdefault(key, node)
        if first is node:
            self.order.append(key)
            for value in node.results:
                self._number_anew(value.name)
            return None
        for value, known in zip(node.results, first.results, strict=True):
            self._numbers[value.name] = self._numbers[known.name]
        return first

    def _number_share(self, node: Node) -> None:
        """Gives a `share` the numbers of the shared generation if both have the same history."""
        is_same = self._number_of(node.get("stream")) == self._number_of(node.get("start"))
        for value, field in zip(node.results, ("end", "value"), strict=True):
            self._number_anew(value.name)
            if is_same and isinstance(node.get(field), Ref):
                self._numbers[value.name] = self._number_of(node.get(field))

    def _key(self, node: Node) -> Key:
        labels = node.spec.labels
        given = [(name, self._key_of(each)) for name, each in node.fields if name not in labels]
        return (node.op, *given, *(value.type for value in node.results))

    def _key_of(self, operand: Operand) -> Hashable:
        if isinstance(operand, Ref):
            return self._numbers[operand.name]
        return tuple(map(self._key_of, operand)) if isinstance(operand, tuple) else operand

    def _number_of(self, operand: Operand) -> int:
        assert isinstance(operand, Ref)
        return self._numbers[operand.name]

    def _number_anew(self, name: str) -> None:
        self._numbers[name] = self._n_numbers
        self._n_numbers += 1


def _is_deterministic(node: Node) -> bool:
    """Whether a node's literal fields make it greedy, or give it a seed of its own."""
    seed, temperature = node.get("seed"), node.get("temperature")
    if isinstance(seed, Lit) and type(seed.value) is int:
        return True
    if not isinstance(temperature, Lit):
        return False
    degrees = temperature.value
    if degrees is None:
        return Flag.GENERATES not in node.flags  # a run's temperature applies only to generations
    if not isinstance(degrees, (int, float)) or isinstance(degrees, bool):
        return False
    return 0 <= degrees < GREEDY_BELOW


def _explained(before: Graph, after: Graph) -> tuple[str, ...]:
    """Lines on each shared generation and the first equal one, and the number of dropped values."""
    were = {value.name: node for node in before.nodes() for value in node.results}
    told: Counter[str] = Counter()
    for node in after.nodes():
        if node.op == "share" and (own := were[node.results[0].name]).op != "share":
            value = node.get("value")
            assert isinstance(value, Ref)
            first = were[value.name]
            name = f"{own.op} {own.text('name')}".rstrip()
            told[f"{own.loc or 'one'}: {name} is that of {first.loc or value.name}"] += 1
    lines = [line + (f", {n} times" if n > 1 else "") for line, n in told.items()]
    n_left_out = sum(1 for _ in before.nodes()) - sum(1 for _ in after.nodes())
    return (*lines, *([f"{n_left_out} equal values are computed once"] if n_left_out else []))


PASS = Pass(
    "share_equal",
    Preserves.RESULTS,
    share_equal,
    "equal generations that draw nothing are asked for once, equal values computed once",
    _explained,
)
