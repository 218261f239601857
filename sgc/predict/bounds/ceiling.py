"""An upper bound of a run's cost, for every path and every reply.

It is an abstract interpretation on bounds of values (`lengths.py`). A test with a known value takes
one branch, any other takes both, and where paths meet the larger cost counts. A loop is followed
turn by turn, as its prompts grow. If that takes too long, or nothing bounds the loop, one turn on
values that cover all turns is multiplied by the most turns the loop can take (`flow.py`). A value
without a bound makes the sums infinite, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sgc.ir.graph import Graph, Lit, Node, Operand
from sgc.ir.limits import MAX_NESTING
from sgc.predict.bounds.asks import Nodes
from sgc.predict.bounds.cost import FREE, Cost
from sgc.predict.bounds.flow import Counter, Flow
from sgc.predict.bounds.lengths import Bound, known
from sgc.predict.bounds.nodes import Terms
from sgc.predict.bounds.requests import Asking, EngineAsking
from sgc.predict.bounds.states import Result, Value, anything, covers, joined
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat
from sgc.runtime.executor.run.options import RunOptions

MAX_BLOCKS = 8_000  # the most that are followed path by path
MAX_BLOCKS_FOR_ANY = 1_000  # the same with unknown arguments, which decide few tests
NODES_A_BLOCK = 50  # the most that are followed, on average
MAX_TURNS = 64  # followed of a loop without a bound, which may still end
MAX_LOOPS = 32  # nested, that are followed
MAX_COUNTED = 10**15  # turns; more count as unbounded


def ceiling_of(
    graph: Graph,
    arguments: Mapping[str, Any],
    asking: Asking,
    options: RunOptions,
    tool_tokens: float,
) -> Cost:
    """The bound for a run with these arguments. tool_tokens: the most of a tool's result."""
    given = {name: known(value) for name, value in arguments.items()}
    shared = _Shared(graph, Terms(asking, options, tool_tokens), MAX_BLOCKS)
    return _Walk(graph, given, shared).run_all().cost


def ceiling_for_any(graph: Graph) -> Cost:
    """The bound for a run on our engine with any arguments, without prompt tokens. Generations
    without their own `max_tokens` count no tokens, and the part left to the interpreter counts
    nothing.
    """
    asking = EngineAsking(Capabilities("", ChatFormat({}), max_context=0), n_first=0)
    terms = Terms(asking, RunOptions(max_tokens=0), math.inf, is_for_any=True)
    shared = _Shared(graph, terms, MAX_BLOCKS_FOR_ANY)
    return _Walk(graph, _any_arguments(graph), shared).run_all().cost


def _any_arguments(graph: Graph) -> dict[str, Value]:
    why = "an argument may be of any length"
    return {param.value.name: anything(param.value.type, why) for param in graph.params}


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The state at a block's entry: the cost so far, and the block's arguments."""

    cost: Cost
    params: tuple[Value, ...] = ()

    def joined(self, other: _Arrival) -> _Arrival:
        pairs = zip(self.params, other.params, strict=True)
        return _Arrival(self.cost.maximum(other.cost), tuple(joined(a, b) for a, b in pairs))


_Arrivals = dict[int, _Arrival]


class _Shared:
    """State shared by a program and those it calls: terms, and the budget for following paths."""

    def __init__(self, graph: Graph, terms: Terms, n_blocks: int) -> None:
        self.called = graph.called
        self.terms = terms
        self._flows: dict[int, Flow] = {}
        self._for_any: list[Result] = []
        self._n_blocks, self._n_nodes = n_blocks, n_blocks * NODES_A_BLOCK

    def flow(self, graph: Graph) -> Flow:
        return self._flows.setdefault(id(graph), Flow(graph))

    def spend(self, n_nodes: int, n_blocks: int = 1) -> None:
        self._n_blocks -= n_blocks
        self._n_nodes -= n_nodes

    @property
    def is_spent(self) -> bool:
        return self._n_blocks < 0 or self._n_nodes < 0

    def for_any(self, number: int) -> Result:
        while len(self._for_any) <= number:  # a called program calls only earlier ones
            graph = self.called[len(self._for_any)]
            found = _Walk(graph, _any_arguments(graph), self, depth=MAX_NESTING + 1).run_all()
            self._for_any.append(found)
        return self._for_any[number]


class _Walk:
    """Follows one program, and is the `Calls` of its nodes. depth: how many programs call it."""

    def __init__(
        self, graph: Graph, arguments: Mapping[str, Value], shared: _Shared, depth: int = 0
    ) -> None:
        self._graph = graph
        self._shared = shared
        self._depth = depth
        self._n_around = 0  # loops
        self._flow = shared.flow(graph)
        self._result = Result()
        self._nodes = Nodes(shared.terms, self._flow, self)
        for param in graph.params:
            name = param.value.name
            default = self._nodes.of(param.default) if param.default is not None else Bound()
            self._nodes.values[name] = arguments.get(name, default)

    def run_all(self) -> Result:
        everything = set(range(len(self._graph.blocks)))
        self._region(everything, {0: _Arrival(FREE)}, barrier=None)
        return self._result

    # -- called programs ------------------------------------------------------------------

    @property
    def is_budget_spent(self) -> bool:
        return self._shared.is_spent or self._depth > MAX_NESTING

    def name(self, number: int) -> str:
        return self._shared.called[number].name

    def run(self, number: int, fixed: Mapping[str, Value], item: Value) -> Result:
        if self.is_budget_spent:
            return self.for_any(number)
        graph = self._shared.called[number]
        (element,) = (p.value.name for p in graph.params if p.value.name not in fixed)
        return _Walk(graph, {**fixed, element: item}, self._shared, self._depth + 1).run_all()

    def for_any(self, number: int) -> Result:
        return self._shared.for_any(number)

    # -- paths ----------------------------------------------------------------------------

    def _region(
        self, blocks: set[int], entries: Mapping[int, _Arrival], barrier: int | None
    ) -> _Arrivals:
        """Follows some blocks once, and nothing after the barrier; returns the states at the blocks
        that it leads to, including loop entries.
        """
        waiting, left = dict(entries), _Arrivals()
        for members, is_loop in self._flow.parts(frozenset(blocks), barrier):
            arrived = {number: waiting.pop(number) for number in members if number in waiting}
            if not arrived:
                continue
            found = self._loop(members, arrived) if is_loop else self._block(*arrived.popitem())
            for target, arrival in found.items():
                stays = target in blocks and barrier not in members
                _arrive(waiting if stays else left, target, arrival)
        return left

    def _loop(self, part: set[int], entries: Mapping[int, _Arrival]) -> _Arrivals:
        """Follows all turns of a loop; returns the states at its exits."""
        if self._n_around == MAX_LOOPS:
            return self._not_followed(part, entries)
        barrier, n_turns = self._turns(part, entries)
        exits, seen, current = _Arrivals(), _Arrivals(), dict(entries)
        n_left = n_turns if math.isfinite(n_turns) else MAX_TURNS
        self._n_around += 1
        with self._nodes.peaks():
            while current and n_left and not self.is_budget_spent:
                n_left -= 1
                for target, arrival in current.items():
                    _arrive(seen, target, arrival)
                found = self._region(part, current, barrier)
                current = {}
                for target, arrival in found.items():
                    _arrive(current if target in part else exits, target, arrival)
        if current and (self.is_budget_spent or math.isinf(n_turns)):
            exits = self._at_once(part, entries, seen, barrier, n_turns)
        self._n_around -= 1
        return exits  # a further turn of a bounded loop is an error

    def _turns(self, part: set[int], entries: Mapping[int, _Arrival]) -> tuple[int, float]:
        """A block of a loop, and the most turns of a run, where each turn but the last ends with
        this block. Inner loops count their own turns.
        """
        counters = self._flow.counters(part)
        for counter in counters:
            if isinstance(counter.limit, Lit) and (n_turns := self._counted(counter, entries)):
                return counter.block, n_turns
        for counter in counters:
            if n_turns := self._counted(counter, entries):
                return counter.block, n_turns
        return min(part), math.inf

    def _counted(self, counter: Counter, entries: Mapping[int, _Arrival]) -> int | None:
        """How many turns a counter allows; None if its limit or its start is not known."""
        begins: list[int | None] = []
        for number, arrival in entries.items():
            params = self._graph.blocks[number].params
            for param, value in zip(params, arrival.params, strict=True):
                if param.name in counter.begins:
                    least = 0 if param.name in self._flow.from_zero else None
                    whole = _whole(value)
                    begins.append(least if whole is None else whole)
        limit = _whole(self._nodes.of(counter.limit))
        known = [number for number in begins if number is not None]
        if limit is None or not known or len(known) < len(begins):
            return None
        n_turns = max(limit - min(known), 1)
        return n_turns if n_turns < MAX_COUNTED else None

    def _at_once(
        self, part: set[int], entries: Mapping[int, _Arrival], seen: Mapping[int, _Arrival],
        barrier: int, n_turns: float,
    ) -> _Arrivals:  # fmt: skip
        """Follows all turns of a loop as one, on values that cover all turns."""
        before = self._result.cost
        starts = {target: replace(arrival, cost=FREE) for target, arrival in seen.items()}
        is_any = False
        while True:
            if self.is_budget_spent and not is_any:
                starts = self._starts_of_any(part, entries, barrier)
                is_any = True
            self._result.cost = FREE
            found = self._region(part, starts, barrier)
            again = {target: found.pop(target) for target in part if target in found}
            if is_any or not self._widen(part, starts, again):
                break
        turn = FREE
        for arrival in again.values():
            turn = turn.maximum(arrival.cost)
        cost = FREE
        for arrival in entries.values():
            cost = cost.maximum(arrival.cost)
        turn = turn.times(n_turns - 1)
        if math.isinf(n_turns) and turn != FREE:
            turn = replace(turn, why=turn.why or f"{self._where(part)}: {_NO_BOUND}")
        cost = cost.plus(turn)
        self._result.cost = before.maximum(cost.plus(self._result.cost))
        return {t: replace(arrival, cost=cost.plus(arrival.cost)) for t, arrival in found.items()}

    def _starts_of_any(
        self, part: set[int], entries: Mapping[int, _Arrival], barrier: int
    ) -> _Arrivals:
        """The blocks where turns may begin, with any values."""
        why = f"{self._where(part)}: the loop has too many turns to follow"
        numbers = {*entries, *self._flow.after(barrier) & part}
        return {number: self._any(number, FREE, why) for number in numbers}

    def _any(self, number: int, cost: Cost, why: str) -> _Arrival:
        params = self._graph.blocks[number].params
        return _Arrival(cost, tuple(anything(param.type, why) for param in params))

    def _widen(self, part: set[int], starts: _Arrivals, again: Mapping[int, _Arrival]) -> bool:
        """Widens the start values of a turn to cover those at its end; returns whether it changed
        any.
        """
        is_wider = False
        why = f"{self._where(part)}: it grows in a loop without a bound"
        for target, arrival in again.items():
            before = starts.get(target)
            if before is None:
                starts[target], is_wider = replace(arrival, cost=FREE), True
                continue
            any_ = self._any(target, FREE, why)
            pairs = zip(before.params, arrival.params, any_.params, strict=True)
            params = tuple(old if covers(old, new) else most for old, new, most in pairs)
            if any(a is not b for a, b in zip(params, before.params, strict=True)):
                starts[target], is_wider = _Arrival(FREE, params), True
        return is_wider

    def _not_followed(self, part: set[int], entries: Mapping[int, _Arrival]) -> _Arrivals:
        """The exits of a loop that is nested too deeply to follow."""
        why = f"{self._where(part)}: the loop lies in too many others"
        cost = FREE
        for arrival in entries.values():
            cost = cost.maximum(arrival.cost)
        nodes = [node for number in part for node in self._graph.blocks[number].nodes]
        self._shared.spend(len(nodes), len(part))
        if any(node.op in ("gen", "gen_n", "select", "fork", "map") for node in nodes):
            cost = cost.plus(Cost.unbounded(why))
        self._result.cost = self._result.cost.maximum(cost)
        targets = set().union(*map(self._flow.after, part)) - part
        return {target: self._any(target, cost, why) for target in targets}

    def _where(self, part: set[int]) -> str:
        locs = [node.loc for n in sorted(part) for node in self._graph.blocks[n].nodes if node.loc]
        return str(locs[0]) if locs else "a line unknown"

    # -- blocks ---------------------------------------------------------------------------

    def _block(self, number: int, arrival: _Arrival) -> _Arrivals:
        """Follows one block; returns the states at the next blocks."""
        block = self._graph.blocks[number]
        for param, value in zip(block.params, arrival.params, strict=True):
            self._nodes.set(param.name, value)
        cost = arrival.cost
        for node in block.nodes[:-1]:
            made = self._nodes.run(node)
            if made.cost is not FREE:
                cost = cost.plus(made.cost)
            self._result.take(made)
        self._shared.spend(len(block.nodes))
        last = block.nodes[-1]
        if last.op == "return":
            value = self._nodes.of(last.get("value"))
            self._result.returned = joined(self._result.returned, value)
        elif last.op == "deopt" and not self._shared.terms.is_for_any:
            where = last.loc or "a line unknown"
            cost = cost.plus(Cost.unbounded(f"{where}: {_NOT_COMPILED}"))
        # A run may end in this block with an error.
        self._result.cost = self._result.cost.maximum(cost)
        return {
            self._flow.numbers[target]: _Arrival(cost, tuple(map(self._nodes.of, args)))
            for target, args in self._targets(last)
        }

    def _targets(self, last: Node) -> Iterator[tuple[str, Sequence[Operand]]]:
        """The blocks that may follow a terminator, with their arguments."""
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


_NO_BOUND = "the loop has no bound that is known"
_NOT_COMPILED = "the part left to the interpreter has no bound"


def _whole(value: Value) -> int | None:
    """The integer, if it is known."""
    if not isinstance(value, Bound) or value.known is None or type(value.known[0]) is not int:
        return None
    return int(value.known[0])


def _literals(operand: Operand) -> list[Any]:
    assert isinstance(operand, tuple)
    return [item.value for item in operand if isinstance(item, Lit)]


def _arrive(at: _Arrivals, target: int, arrival: _Arrival) -> None:
    before = at.get(target)
    at[target] = arrival if before is None else before.joined(arrival)
