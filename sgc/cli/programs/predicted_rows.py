"""The rows to predict: the row in `--args`, or the rows in `--rows` or in a log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sgc.cli.programs.arguments import check_texts, checked
from sgc.cli.programs.loading import Given
from sgc.errors import UsageError
from sgc.ir.graph import Graph
from sgc.predict.dry.dry_run import Row
from sgc.predict.dry.samples import Samples
from sgc.predict.targets import EngineTarget, ProviderTarget, Target
from sgc.programs.program import Program
from sgc.runs.options import make_options
from sgc.runtime.executor.backends.providers.connect import is_provider
from sgc.runtime.executor.interface.argument_shapes import with_tuples
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.options import RunOptions


def rows_of(given: Given, program: Program, bound: Sequence[str]) -> list[Row]:
    """The rows to predict. Raises UsageError, naming the line, for a row that does not fit the
    program.
    """
    if given.job is not None:
        given.job.look(program)
        rows = checked(list(given.job.read()), given.job.source.name, program, bound)
        return [Row(row.key, row.arguments) for row in rows]
    types = {param.value.name: param.value.type for param in program.graph.params}
    arguments = {n: v for n, v in given.arguments(types).items() if n not in bound}
    check_texts(arguments)
    arguments = with_tuples(program.graph, arguments)
    bind_arguments(program.graph, arguments)
    return [Row(RunOptions().row, arguments)]


def rows_of_log(samples: Samples, graph: Graph) -> list[Row]:
    """The rows of a log, with the arguments that the program takes."""
    names = {param.value.name for param in graph.params}
    found = []
    for key in samples.rows:
        logged = {n: v for n, v in samples.arguments(key).items() if n in names}
        arguments = with_tuples(graph, logged)
        bind_arguments(graph, arguments)
        found.append(Row(key, arguments))
    return found


def open_samples(path: Path | None, graph: Graph, held: ExitStack) -> tuple[Samples, RunLog] | None:
    """Opens a log to take replies from. Raises UsageError for the log of another program."""
    if path is None:
        return None
    log = held.enter_context(RunLog.read(path))
    return Samples(log, graph), log


def open_target(
    engine: str | None, model: str | None, prices: Path | None, pool_tokens: int | None
) -> Target:
    """The model to predict for; makes no request."""
    if engine is None:
        if prices is not None:
            raise UsageError("--prices is for model providers", hint="--engine openai:MODEL")
        return EngineTarget(model, pool_tokens)
    if not is_provider(engine):
        raise UsageError(
            f"a prediction makes no requests; name a model instead of {engine}",
            hint="--model FOLDER for an engine of ours, --engine openai:MODEL or anthropic:MODEL",
        )
    if model is not None or pool_tokens is not None:
        option = "--model" if model is not None else "--pool-tokens"
        raise UsageError(f"{option} is for an engine of ours, and --engine names a provider")
    return ProviderTarget(engine, prices)


def run_options(samples: Samples | None, given: dict[str, Any]) -> RunOptions:
    """The options of the predicted runs: as given, else as in the log."""
    asked = {name: value for name, value in given.items() if value is not None}
    if samples is None:
        return make_options({"seed": 0, **asked})
    logged = samples.options()
    named = {name: getattr(logged, name) for name in ("seed", *logged.given())}
    named = {name: value for name, value in named.items() if name != "ordered_joins"}
    return make_options({**named, **asked})


def assumptions(samples: Samples | None, rows: Sequence[Row], path: Path | None) -> str:
    """A line that says what is assumed of replies."""
    if samples is None:
        return (
            "assumed: replies of half their max_tokens, the first of choices "
            "(--like LOG: as in the log of some rows)"
        )
    n_same = sum(samples.is_same(row.key) for row in rows)
    told = f"{n_same} of {len(rows)} rows are in it, the others are taken to be like those"
    return f"assumed: replies as in {path}" + (f" ({told})" if n_same < len(rows) else "")
