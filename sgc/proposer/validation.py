"""Runs a program before and after code movement on sample rows, and compares what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sgc.ir.graph import Block, Graph, Lit, Node
from sgc.ir.op_specs import Flag
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.rows_file import InputRow
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


@dataclass(frozen=True, slots=True)
class Difference:
    """What a row gave before and after; name: the variable, or what else differs."""

    key: str
    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Validation:
    n_rows: int
    differences: tuple[Difference, ...]

    @property
    def n_equal(self) -> int:
        """Rows whose variables and returned value are all equal."""
        return self.n_rows - len({difference.key for difference in self.differences})

    @property
    def share_equal(self) -> float:
        return self.n_equal / self.n_rows


def validate(
    before: Graph, after: Graph, rows: Iterable[InputRow], endpoint: Endpoint
) -> Validation:
    """Runs both greedily, whatever their temperatures, row by row."""
    programs = Program(greedy(before)), Program(greedy(after))
    options = RunOptions(temperature=0.0, seed=0)
    found: list[Difference] = []
    n_rows = 0
    for row in rows:
        one, two = (program.run_once(row.arguments, options, endpoint) for program in programs)
        found += _differences(row.key, one, two)
        n_rows += 1
    return Validation(n_rows, tuple(found))


def greedy(graph: Graph) -> Graph:
    """The program with every draw greedy."""
    blocks = tuple(map(_greedy_block, graph.blocks))
    return replace(graph, blocks=blocks, called=tuple(map(greedy, graph.called)))


def _greedy_block(block: Block) -> Block:
    return replace(block, nodes=tuple(map(_greedy_node, block.nodes)))


def _greedy_node(node: Node) -> Node:
    return node.with_fields(temperature=Lit(0.0)) if Flag.ASKS in node.flags else node


def _differences(key: str, one: RunResult, two: RunResult) -> Iterator[Difference]:
    before, after = _given(one), _given(two)
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield Difference(key, name, before.get(name), after.get(name))


def _given(result: RunResult) -> dict[str, Any]:
    """Variables by stream and name, and what was returned."""
    found = {
        f"{stream.path or stream.name}[{number}].{name}": value
        for number, stream in enumerate(result.streams)
        for name, value in stream.variables.items()
    }
    return {**found, "the returned value": result.ret_value}
