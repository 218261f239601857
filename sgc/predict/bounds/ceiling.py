"""What a run can cost at most, whichever way it goes and whatever comes back.

The program is followed on bounds of its values (`lengths.py`): a test whose value is known goes one
way, any other goes both, and of ways that meet the dearer counts. A loop is followed turn by turn,
as its prompts grow, up to its bound (`ir.analysis`). What has no bound makes the sums infinite,
and is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx

from sgc.ir.analysis.ceiling import turns_of
from sgc.ir.analysis.dependencies import flow_graph
from sgc.ir.graph import Graph, Lit, Node, Operand
from sgc.predict.bounds.lengths import Bound, known
from sgc.predict.bounds.nodes import Nodes
from sgc.predict.bounds.requests import Asking, Cost
from sgc.predict.bounds.states import Made, Value, joined

MAX_BLOCKS = 8_000  # that are followed; then a loop counts as one without a bound
MAX_TURNS = 64  # of a loop without a bound that may still be seen to end

Flow = Any  # a networkx graph of blocks by number
Parts = Sequence[tuple[set[int], bool]]


@dataclass(frozen=True, slots=True)
class Arrival:
    """At a block: what the way there costs, and what it hands on."""

    cost: Cost
    params: tuple[Value, ...] = ()

    def joined(self, other: Arrival) -> Arrival:
        pairs = zip(self.params, other.params, strict=True)
        return Arrival(self.cost.or_else(other.cost), tuple(joined(a, b) for a, b in pairs))


@dataclass(slots=True)
class Result:
    """cost: of the dearest way. returned, variables, text: what any way gives, at most."""

    cost: Cost = field(default_factory=Cost)
    returned: Value = field(default_factory=Bound)
    variables: dict[str, Value] = field(default_factory=dict)
    text: Bound = field(default_factory=Bound)


class Budget:
    """How many blocks may still be followed, in a program and those that it calls."""

    def __init__(self, n_blocks: int = MAX_BLOCKS) -> None:
        self.n_left = n_blocks

    def take(self) -> bool:
        self.n_left -= 1
        return self.n_left >= 0


def ceiling_of(
    graph: Graph, arguments: Mapping[str, Any], asking: Asking, options: Any, tool_tokens: float
) -> Cost:
    """Of one run with these arguments. tool_tokens: that a tool's result has at most."""
    bounds = {name: known(value) for name, value in arguments.items()}
    return _Walk(graph, graph.called, bounds, asking, options, tool_tokens, Budget()).run().cost


class _Walk:
    """Through one program."""

    def __init__(
        self,
        graph: Graph,
        called: Sequence[Graph],
        arguments: Mapping[str, Value],
        asking: Asking,
        options: Any,
        tool_tokens: float,
        budget: Budget,
    ) -> None:
        self._graph = graph
        self._context = (called, asking, options, tool_tokens, budget)
        self._budget = budget
        self._flow: Flow = flow_graph(graph)
        self._numbers = {block.name: number for number, block in enumerate(graph.blocks)}
        self._known_parts: dict[tuple[frozenset[int], int | None], Parts] = {}
        self._result = Result()
        self._nodes = Nodes(asking, options, tool_tokens, self._run_called)
        for param in graph.params:
            name = param.value.name
            default = self._nodes.of(param.default) if param.default is not None else Bound()
            self._nodes.values[name] = arguments.get(name, default)

    def run(self) -> Result:
        everything = set(range(len(self._graph.blocks)))
        self._region(everything, {0: Arrival(Cost())}, barrier=None)
        return self._result

    def _run_called(self, number: int, fixed: Mapping[str, Value], item: Value) -> Result:
        called, asking, options, tool_tokens, budget = self._context
        graph = called[number]
        (element,) = (p.value.name for p in graph.params if p.value.name not in fixed)
        arguments = {**fixed, element: item}
        return _Walk(graph, called, arguments, asking, options, tool_tokens, budget).run()

    # -- ways -----------------------------------------------------------------------------

    def _region(
        self, blocks: set[int], entries: Mapping[int, Arrival], barrier: int | None
    ) -> dict[int, Arrival]:
        """Follows part of the program once, and nothing beyond the barrier; gives where it is
        left for, loops that lead back among it.
        """
        waiting, left = dict(entries), dict[int, Arrival]()
        for members, is_loop in self._parts(frozenset(blocks), barrier):
            arrived = {number: waiting.pop(number) for number in members if number in waiting}
            if not arrived:
                continue
            found = self._loop(members, arrived) if is_loop else self._block(*arrived.popitem())
            for target, arrival in found.items():
                stays = target in blocks and barrier not in members
                _arrive(waiting if stays else left, target, arrival)
        return left

    def _parts(self, blocks: frozenset[int], barrier: int | None) -> Parts:
        """Loops and blocks in none of a part of the program, in an order in which they may run; and
        which of the two they are. Nothing goes on from the barrier.
        """
        key = (blocks, barrier)
        if key not in self._known_parts:
            inside = self._flow.subgraph(blocks).copy()
            if barrier is not None:
                inside.remove_edges_from(list(inside.out_edges(barrier)))
            condensed = nx.condensation(inside)
            found = [condensed.nodes[part]["members"] for part in nx.topological_sort(condensed)]
            self._known_parts[key] = [
                (members, len(members) > 1 or inside.has_edge(*(min(members),) * 2))
                for members in found
            ]
        return self._known_parts[key]

    def _loop(self, part: set[int], entries: Mapping[int, Arrival]) -> dict[int, Arrival]:
        """All turns of a loop."""
        bounded = turns_of(self._graph, part)
        barrier, n_turns = bounded or (min(part), MAX_TURNS)
        exits: dict[int, Arrival] = {}
        current = dict(entries)
        n_done = 0
        with self._nodes.peaks():
            while current and n_done < n_turns and self._budget.n_left > 0:
                n_done += 1
                found = self._region(part, current, barrier)
                current = {}
                for target, arrival in found.items():
                    _arrive(current if target in part else exits, target, arrival)
        if current and (bounded is None or n_done < n_turns):  # else the next turn is an error
            return self._endless(part, exits, current)
        return exits

    def _endless(
        self, part: set[int], exits: dict[int, Arrival], current: Mapping[int, Arrival]
    ) -> dict[int, Arrival]:
        """A loop whose turns nobody counts: what is asked in it may be asked any number of times,
        and what it hands on may be of any length.
        """
        where = self._where(part)
        asks = any(
            node.op in ("gen", "gen_n", "select", "map")
            for number in part
            for node in self._graph.blocks[number].nodes
        )
        more = Cost()
        if asks:
            why = f"{where}: the loop has no bound that is known"
            more = Cost(*(math.inf,) * 4, why)
        targets = {t for number in part for t in self._flow.successors(number)} - part
        for target in targets:
            n_params = len(self._graph.blocks[target].params)
            endless = Bound(math.inf, why=f"{where}: it grows in a loop without a bound")
            worst = max(current.values(), key=lambda arrival: arrival.cost.money)
            arrival = exits.get(target, Arrival(worst.cost, (endless,) * n_params))
            exits[target] = replace(arrival, cost=arrival.cost.plus(more))
        if not targets:
            self._result.cost = self._result.cost.or_else(more)
        return exits

    def _where(self, part: set[int]) -> str:
        locs = [node.loc for n in sorted(part) for node in self._graph.blocks[n].nodes if node.loc]
        return str(locs[0]) if locs else "a line unknown"

    # -- blocks ---------------------------------------------------------------------------

    def _block(self, number: int, arrival: Arrival) -> dict[int, Arrival]:
        """Follows one block; gives where it goes on to."""
        block = self._graph.blocks[number]
        for param, value in zip(block.params, arrival.params, strict=True):
            self._nodes.set(param.name, value)
        cost = arrival.cost
        for node in block.nodes[:-1]:
            made = self._nodes.run(node)
            cost = cost.plus(made.cost)
            self._take(made)
        if not self._budget.take():
            why = f"{self._where({number})}: there are too many turns to follow"
            self._result.cost = self._result.cost.or_else(Cost(*(math.inf,) * 4, why))
            return {}
        last = block.nodes[-1]
        found = {}
        for target, args in self._targets(last):
            found[self._numbers[target]] = Arrival(cost, tuple(map(self._nodes.of, args)))
        if not found:
            self._end(last, cost)
        return found

    def _take(self, made: Made) -> None:
        for name, value in made.variables.items():
            before = self._result.variables.get(name)
            self._result.variables[name] = value if before is None else joined(before, value)
        if made.text is not None:
            self._result.text = self._result.text.joined(made.text)

    def _end(self, last: Node, cost: Cost) -> None:
        if last.op == "return":
            value = self._nodes.of(last.get("value"))
            self._result.returned = joined(self._result.returned, value)
        elif last.op == "deopt":
            why = f"{last.loc or 'a line unknown'}: what is left to the interpreter has no bound"
            cost = cost.plus(Cost(*(math.inf,) * 4, why))
        self._result.cost = self._result.cost.or_else(cost)

    def _targets(self, last: Node) -> Iterator[tuple[str, Sequence[Operand]]]:
        """The blocks that a terminator may go on with, and what it hands on."""
        if last.op == "jump":
            args = last.get("args")
            yield last.text("target"), args if isinstance(args, tuple) else ()
        elif last.op == "branch":
            test = self._nodes.of(last.get("test"))
            is_known = isinstance(test, Bound) and test.known is not None
            ways = (bool(test.known[0]),) if is_known and test.known else (True, False)  # type: ignore[union-attr]
            yield from ((last.text("then" if way else "orelse"), ()) for way in ways)
        elif last.op == "switch":
            yield from ((target, ()) for target in self._cases(last))

    def _cases(self, last: Node) -> Sequence[str]:
        value, cases = self._nodes.of(last.get("value")), _literals(last.get("cases"))
        targets, default = _literals(last.get("targets")), last.text("default")
        if isinstance(value, Bound) and value.known is not None:
            chosen = dict(zip(cases, targets, strict=True)).get(value.known[0], default)
            return [chosen] if chosen else []
        return list(dict.fromkeys([*targets, *([default] if default else [])]))


def _literals(operand: Operand) -> list[Any]:
    assert isinstance(operand, tuple)
    return [item.value for item in operand if isinstance(item, Lit)]


def _arrive(at: dict[int, Arrival], target: int, arrival: Arrival) -> None:
    before = at.get(target)
    at[target] = arrival if before is None else before.joined(arrival)
