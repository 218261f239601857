"""`sgc explain`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import click

from sgc.cli.compile import bind_values
from sgc.cli.source import is_source, load_function
from sgc.errors import UsageError
from sgc.explain import findings
from sgc.ir.ceiling import Mapped, ceiling
from sgc.ir.file import load
from sgc.ir.graph import Graph
from sgc.tracing.explore import Report


def explain_program(program: str, bindings: tuple[str, ...]) -> None:
    """Prints what there is to point out, a finding at a time, and what a run may cost."""
    report = Report()
    graph = _graph(program, bindings, report)
    found = findings(graph)
    click.echo("\n".join(map(str, found)) or "nothing to point out")
    click.echo("\n".join(_summary(graph, report)))


def _summary(graph: Graph, report: Report) -> Iterator[str]:
    """The ways through the program, and what the dearest one costs."""
    most = ceiling(graph)
    if len(graph.blocks) > 1:
        loops = f", {most.loops} loops" if most.loops else ""
        yield f"{most.ways} ways through {len(graph.blocks)} blocks{loops}"
    yield from (f"known without asking: {test}" for test in report.pruned)
    reasons = {node.text("reason") for node in graph.all_nodes() if node.op == "deopt"}
    yield from (f"left to the interpreter: {reason}" for reason in sorted(reasons))
    extra = f", and those of {most.n_unlimited} generations without max_tokens"
    tokens = f"{_count(most.tokens)} generated tokens" + (extra if most.n_unlimited else "")
    yield f"at most {_count(most.requests)} requests, {tokens}"
    yield from map(_mapped, most.mapped)


def _mapped(each: Mapped) -> str:
    """What a map adds for each item of lists whose length is not known."""
    lengths = " and ".join(f"the length of {name}" for name in each.lists)
    cost = f"{_count(each.requests)} requests, {_count(each.tokens)} generated tokens"
    return f"and for {each.program}, times {lengths}: {cost}"


def _count(number: float) -> str:
    return "any number of" if math.isinf(number) else str(int(number))


def _graph(program: str, bindings: tuple[str, ...], report: Report) -> Graph:
    """As it is written: a pass could leave out what there is something to say of."""
    if is_source(program):
        from sgc.tracing.ambient import ambient_allowed
        from sgc.tracing.tracer import trace

        function = load_function(program)
        values = {**function.bind_arguments, **bind_values(function, bindings)}
        with ambient_allowed(function.allow_ambient):
            return trace(function, values, report=report)
    if bindings:
        raise UsageError("--bind needs the Python source, not a compiled program")
    return load(program)
