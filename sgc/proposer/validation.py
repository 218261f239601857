"""Runs a program before and after code movement on sample rows, and compares what it returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.op_specs import Flag
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.rows_file import InputRow
from sgc.runtime.executor.interface.tools import unshown
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


@dataclass(frozen=True, slots=True)
class Difference:
    """What a row returned before and after; name: the variable, or what else differs."""

    key: str
    name: str
    before: Any
    after: Any


def validate(
    before: Graph, after: Graph, rows: Iterable[InputRow], endpoint: Endpoint
) -> list[Difference]:
    """Runs both greedily, whatever their temperatures, row by row."""
    programs = Program(greedy(before)), Program(greedy(after))
    options = RunOptions(temperature=0.0, seed=0, on_show=unshown)
    found: list[Difference] = []
    for row in rows:
        one, two = (_given(each.run_once(row.arguments, options, endpoint)) for each in programs)
        names = [name for name in {**one, **two} if one.get(name) != two.get(name)]
        found += [Difference(row.key, name, one.get(name), two.get(name)) for name in names]
    return found


def greedy(graph: Graph) -> Graph:
    """The program with every draw greedy."""

    def made(node: Node) -> Node:
        return node.with_fields(temperature=Lit(0.0)) if Flag.ASKS in node.flags else node

    blocks = tuple(replace(block, nodes=tuple(map(made, block.nodes))) for block in graph.blocks)
    return replace(graph, blocks=blocks, called=tuple(map(greedy, graph.called)))


def _given(result: RunResult) -> dict[str, Any]:
    """A run's variables by stream and name, and its return value."""
    found = {
        f"{stream.path or stream.name}[{number}].{name}": value
        for number, stream in enumerate(result.streams)
        for name, value in stream.variables.items()
    }
    return {**found, "the returned value": result.ret_value}
