"""`sgc explain`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from sgc.cli.columns import columns_of
from sgc.cli.programs.compile import bind_values
from sgc.cli.programs.estimate import totals_json
from sgc.cli.programs.loading import Given, static_arguments, values_of
from sgc.cli.programs.predicted_rows import (
    assumptions,
    open_samples,
    open_target,
    rows_of,
    rows_of_log,
    run_options,
)
from sgc.cli.programs.receipts import receipts, totals
from sgc.cli.programs.source import check_program, is_source, load_function
from sgc.errors import UsageError, counted
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.analysis.remaining import TURNS
from sgc.ir.file.sgir import load
from sgc.ir.graph import Graph, Lit, Node, Ref
from sgc.ir.op_specs import Flag
from sgc.predict.bounds.ceiling import ceiling_for_any
from sgc.predict.bounds.cost import Cost, Mapped
from sgc.predict.bounds.flow import MAX_PATHS, Flow
from sgc.predict.dry.totals import Totals, measured
from sgc.predict.gains import Gain, Step, gains, steps_of
from sgc.predict.predict import Expecting, expected
from sgc.programs.compiling import Traced, with_values
from sgc.programs.explain import findings
from sgc.programs.program import Program
from sgc.proposer.suggestion import suggestions
from sgc.runtime.executor.hints.ahead import longest_path
from sgc.tracing.paths.exploration import Report


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What `sgc explain` is to predict, and for which model."""

    given: Given
    log: Path | None
    engine: str | None
    model: str | None
    prices: Path | None
    level: int
    is_warm: bool
    as_json: bool

    @property
    def is_prediction(self) -> bool:
        return bool(self.given) or self.log is not None


def explain_program(
    program: str,
    bindings: tuple[str, ...],
    json_args: str | None,
    single_args: tuple[str, ...],
    rows: Path | None,
    key: str | None,
    ignore_columns: bool,
    after_run: Path | None,
    **options: Any,
) -> None:
    """Prints findings, instructions that could move before the arguments, a run's upper bounds and
    the passes' receipts; with rows, also their predicted usage.
    """
    given = Given.read(json_args, single_args, rows, columns_of(key, ignore_columns))
    asked = ExplainOptions(given, after_run, **options)
    report = Report()
    graph, bound = _graph(program, bindings, asked.given, report)
    # A compiled program has been through its passes already.
    level = asked.level if is_source(program) else 1
    made, steps = steps_of(graph, level) if is_source(program) else (graph, ())
    told = _predicted(graph, made, steps, level, asked, bound) if asked.is_prediction else None
    if asked.as_json:
        click.echo(json.dumps(_json(graph, made, told, _file(program)), ensure_ascii=False))
        return
    click.echo("\n".join(map(str, findings(graph))) or "no advice")
    for each in suggestions(graph, _file(program)):
        click.echo(each)
    click.echo("\n".join(_summary(graph, report)))
    lines = list(receipts(made.receipts, told.gains if told is not None else ()))
    if told is not None:
        lines += [told.heading, *totals(told.predicted, told.measured), told.assumed]
    if lines:
        click.echo("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for some rows, and what was measured."""

    heading: str
    gains: list[Gain]
    predicted: Totals
    measured: Totals | None
    assumed: str


def _predicted(
    graph: Graph, made: Graph, steps: Sequence[Step], level: int, asked: ExplainOptions,
    bound: Sequence[str],
) -> Prediction:  # fmt: skip
    target = open_target(asked.engine, asked.model, asked.prices, None)
    with ExitStack() as held:
        opened = open_samples(asked.log, made, held)
        samples, log = opened if opened is not None else (None, None)
        if asked.given:
            todo = rows_of(asked.given, Program(made), bound)
        else:
            assert samples is not None
            todo = rows_of_log(samples, made)
        how = Expecting(run_options(samples, {}), bool(level), asked.is_warm)
        found = gains(graph, steps, todo, target, how, samples)
        planned = target.planned(made, [row.arguments for row in todo]) if level else made
        predicted = expected(planned, todo, target, how, samples)
        cache = "warm" if asked.is_warm else "cold"
        return Prediction(
            f"{made.name} on {target.name}, {counted(len(todo), 'row')}, cache {cache}",
            found,
            predicted,
            measured(log) if log is not None else None,
            assumptions(samples, todo, asked.log),
        )


def _file(program: str) -> Path | None:
    """The source file in `PROG.py[:FUNCTION]`; None for a compiled program."""
    path, colon, _ = program.partition(".py:")
    return Path(f"{path}.py" if colon else program) if is_source(program) else None


def _json(
    graph: Graph, made: Graph, told: Prediction | None, source: Path | None
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "program": graph.name,
        "findings": [
            {"line": str(each.loc or ""), "what": each.what, "advice": each.advice}
            for each in findings(graph)
        ],
        "suggestions": [
            {"line": str(each.loc or ""), "characters": each.n_chars, "diff": each.diff}
            for each in suggestions(graph, source)
        ],
        "receipts": [asdict(receipt) for receipt in made.receipts],
    }
    if told is not None:
        for receipt, gain in zip(found["receipts"], told.gains, strict=False):
            receipt |= {"before": asdict(gain.before), "after": asdict(gain.after)}
        found["predicted"] = totals_json(told.predicted)
        found["measured"] = totals_json(told.measured) if told.measured is not None else None
        found["assumed"] = told.assumed
    return found


def _summary(graph: Graph, report: Report) -> Iterator[str]:
    """Lines on the paths through the program and the cost of the most expensive one."""
    most, flow = ceiling_for_any(graph), Flow(graph)
    if len(graph.blocks) > 1:
        n_paths, n_loops = flow.n_paths(), flow.n_loops()
        loops = f", {counted(n_loops, 'loop')}" if n_loops else ""
        least = "at least " if n_paths == MAX_PATHS else ""
        yield f"{least}{counted(n_paths, 'path')} through {len(graph.blocks)} blocks{loops}"
    yield from (f"decided at compile time: {test}" for test in report.pruned)
    n_unlimited = sum(map(_is_unlimited, graph.all_nodes()))
    extra = f", and those of {counted(n_unlimited, 'generation')} without max_tokens"
    compiled = "" if left_of(graph) is None else "in what is compiled, "
    bound = "" if math.isinf(most.requests) else "at most "
    yield f"{compiled}{bound}{_sums(most)}{extra if n_unlimited else ''}"
    longest = round(longest_path(graph))
    if longest:
        turns = f", if loops go back {TURNS} times in all" if flow.n_loops() else ""
        yield f"the longest path generates {longest} tokens one after another{turns}"
    yield from (_mapped(each, cost) for each, cost in sorted(most.mapped.items()) if each.lists)


def _is_unlimited(node: Node) -> bool:
    if Flag.GENERATES not in node.flags:
        return False
    limit = node.get("max_tokens")
    return isinstance(limit, Ref) or limit == Lit(None)


def _sums(cost: Cost) -> str:
    tokens = _count(cost.completion_tokens, "generated token")
    return f"{_count(cost.requests, 'request')}, {tokens}"


def _mapped(each: Mapped, cost: Cost) -> str:
    """A line on what each item of a list of unknown length adds in a map."""
    lengths = " and ".join(f"the length of {name}" for name in each.lists)
    return f"and for {each.program}, times {lengths}: {_sums(cost)}"


def _count(number: float, noun: str) -> str:
    return f"an unbounded number of {noun}s" if math.isinf(number) else counted(int(number), noun)


def _graph(
    program: str, bindings: tuple[str, ...], given: Given, report: Report
) -> tuple[Graph, tuple[str, ...]]:
    """The program before its passes, since a pass could drop what a finding is about, and the names
    of the arguments fixed at compile time.
    """
    check_program(program)
    if is_source(program):
        from sgc.tracing.tracer import trace
        from sgc.tracing.watch.ambient import ambient_allowed

        function = load_function(program)
        if given.job is not None:
            given.job.look(function)
        bound, types_of = static_arguments(function, given)
        values = {**function.bind_arguments, **bound, **bind_values(function, bindings)}
        with ambient_allowed(function.allow_ambient):
            graph, fixed, _ = with_values(
                lambda known, how: Traced(
                    trace(
                        function, known, types_of, report=report, leaves=how.leaves,
                        in_python=how.in_python,
                    ),
                    known,
                ),
                values,
                values_of(function, given),
                leaves=True,
                optional=function.signature.optional,
                may_be_in_python=True,
            )  # fmt: skip
        return graph, (*bound, *(name for name in fixed if name not in values))
    if bindings:
        raise UsageError("--bind needs the Python source, not a compiled program")
    return load(program), ()
