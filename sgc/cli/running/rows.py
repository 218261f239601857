"""`sgc run --rows`: runs a program once per line of a file, and writes a JSON line for each."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import click

from sgc.cli.main import EXIT_ERROR
from sgc.interpreter.calls import Canceller, run_eager
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.batch import MAX_CONCURRENCY, Batch, BatchOptions, Row
from sgc.runs.endpoint import Endpoint
from sgc.runs.planned_batch import make_batch
from sgc.runs.row_iterator import run_each
from sgc.runs.rows_file import InputRow
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult, Stats


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """Options of `sgc run --rows`. out: None for stdout; order: None for the level's default."""

    path: Path
    out: Path | None = None
    order: str | None = None
    reorder_fields: bool = False
    max_concurrency: int | None = None
    max_errors: int | None = None
    quiet: bool = False

    def options(self, loaded: Program | Function) -> BatchOptions:
        default = loaded.default_order if isinstance(loaded, Program) else "given"
        return BatchOptions(
            max_concurrency=self.max_concurrency or MAX_CONCURRENCY,
            max_errors=self.max_errors,
            progress=not self.quiet and sys.stderr.isatty(),
            order=self.order or default,
            reorder_fields=self.reorder_fields,
        )


def run_rows(
    loaded: Program | Function,
    function: Function | None,
    inputs: Sequence[InputRow],
    asked: RowsAsked,
    endpoint: Endpoint,
    options: RunOptions,
) -> None:
    """Runs every row and writes them in order as they finish; exits with EXIT_ERROR if one failed.
    function: the program's Python, for runs that continue in the interpreter.
    """
    backend = endpoint.backend
    sharing = loaded.sharing(backend) if isinstance(loaded, Program) else backend
    rows = [_row(loaded, function, each, sharing, options) for each in inputs]
    batch = make_batch(rows, asked.options(loaded), backend, options.max_tokens)
    if not asked.quiet:
        for note in batch.notes:
            click.echo(note, err=True)
    start_s = perf_counter()
    with ExitStack() as held:
        out = None if asked.out is None else held.enter_context(asked.out.open("wb", buffering=0))
        told = _write_all(inputs, batch, out)
    if not asked.quiet:
        click.echo(told.summary(perf_counter() - start_s), err=True)
    if told.n_failed:
        raise click.exceptions.Exit(EXIT_ERROR)


def _row(
    loaded: Program | Function,
    function: Function | None,
    given: InputRow,
    backend: Backend,
    options: RunOptions,
) -> Row:
    """A compiled row, or one interpreted as a whole or from where the compiled part ends."""
    if isinstance(loaded, Program) and (function is None or not may_deopt(loaded.graph)):
        return loaded.row(given.arguments, backend, options, given.key)
    chosen, canceller = replace(options, row=given.key), Canceller()
    python = loaded if isinstance(loaded, Function) else function
    assert python is not None
    bound = python.signature.bind((), given.arguments)

    def interpret(how: RunOptions) -> RunResult:
        return run_eager(python, bound, backend, how, shared, None, canceller)

    def call() -> RunResult:
        if isinstance(loaded, Function):
            return interpret(chosen)
        return run_with_deopt(loaded, backend, given.arguments, chosen, interpret)

    return Row(call=call, cancel=canceller.cancel, how="interpreted")


_SUMMED = (
    "requests", "shared_requests", "cached_requests",
    "prompt_tokens", "cached_tokens", "completion_tokens",
)  # fmt: skip


@dataclass(slots=True)
class _Told:
    """The sums over all rows."""

    n_rows: int = 0
    n_failed: int = 0
    requests: int = 0
    shared_requests: int = 0
    cached_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    first_error: str = ""

    def add(self, stats: Stats) -> None:
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(stats, name))
        if stats.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + stats.cost_usd

    def summary(self, wall_s: float) -> str:
        failed = f", {self.n_failed} failed ({self.first_error})" if self.n_failed else ""
        hit = self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0
        cost = "" if self.cost_usd is None else f"${self.cost_usd:.4g}, "
        others = f" ({self.shared_requests} more shared)" if self.shared_requests else ""
        others += f" ({self.cached_requests} from the cache)" if self.cached_requests else ""
        return (
            f"{self.n_rows} rows{failed}, {self.requests} requests{others}, {self.prompt_tokens} "
            f"prompt tokens ({self.cached_tokens} cached, {hit:.1%} hit), {self.completion_tokens} "
            f"generated, {cost}{wall_s:.2f} s"
        )


def _write_all(inputs: Sequence[InputRow], batch: Batch, out: BinaryIO | None) -> _Told:
    told = _Told()
    for given, state in zip(inputs, run_each(batch, ordered=True), strict=True):
        told.n_rows += 1
        error = state.error()
        if error is None:
            told.add(state.result().stats)
        else:
            told.n_failed += 1
            told.first_error = told.first_error or f"row {given.key}: {error}".split("\n")[0]
        line = json.dumps(row_json(given.key, state), ensure_ascii=False, default=repr)
        if out is None:
            click.echo(line)
        else:  # in one write, so that an interrupt leaves whole lines
            out.write((line + "\n").encode("utf-8", "backslashreplace"))
    return told


def row_json(key: str, state: RunState) -> dict[str, Any]:
    """A row's JSON: its variables and return value, or its error."""
    error = state.error()
    if error is not None:
        return {"key": key, "error": {"type": type(error).__name__, "message": str(error)}}
    result = state.result()
    return {"key": key, "variables": dict(result.variables), "return": result.ret_value}
