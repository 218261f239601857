"""`sgc replay` and `sgc trace`: runs and timelines from a log, without an engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sgc.cli.output.results import check_writable, show, summary, write_result
from sgc.cli.programs.loading import load_program
from sgc.cli.programs.source import path_of
from sgc.errors import RunLogError, UsageError, counted
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.options import make_options
from sgc.runtime.executor.log.log_timeline import log_trace
from sgc.runtime.executor.log.logged_backend import ReplayBackend
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.log.timeline import chrome_trace


def replay(
    log: Path,
    program: str,
    row: str | None,
    as_json: bool,
    interpret: bool,
    level: int,
    trace_file: Path | None,
    quiet: bool,
) -> None:
    """Runs rows of a log again, from the log alone, and prints their results."""
    if trace_file is not None:
        check_writable(trace_file, "--trace", (log, path_of(program)))
    with RunLog.read(log) as found:
        loaded = load_program(program, interpret, level, check=False).program
        rows = _rows(found, row)
        if trace_file is not None and len(rows) != 1:
            raise UsageError(
                f"--trace {trace_file} is for one run, and {log} has {counted(len(rows), 'row')}",
                hint=f"--row ROW, or sgc trace {log}",
            )
        for key in rows:
            options = replace(make_options({"log": found}), row=key)
            arguments = _arguments(found, key, loaded)
            result = loaded.run_once(arguments, options, Endpoint(ReplayBackend(found)))
            show(result, as_json)
            if not as_json and not quiet:
                click.echo(summary(result), err=True)
            if trace_file is not None:
                write_result(trace_file, "--trace", json.dumps(chrome_trace(result)))


def _rows(log: RunLog, row: str | None) -> list[str]:
    rows = log.rows()
    if row is None:
        return rows
    if row not in rows:
        raise UsageError(f"--row {row}: {log.path} has no such row", hint=f"it has: {rows}")
    return [row]


def _arguments(log: RunLog, row: str, loaded: Program | Function) -> Mapping[str, Any]:
    found = log.arguments(row)
    if found is None:
        raise RunLogError(
            f"{log.path} does not have the arguments of row {row}: they were no plain data",
            hint="replay it in Python: program.run(…, log=sgc.RunLog.read(path))",
        )
    if isinstance(loaded, Function):
        return found
    # A log of an interpreted run also has arguments that are fixed in the compiled program.
    names = {param.value.name for param in loaded.graph.params}
    return {name: value for name, value in found.items() if name in names}


def trace(log: Path, output: Path | None) -> None:
    """Writes the timeline of the runs in a log, and prints where."""
    with RunLog.read(log) as found:
        target = output or Path(f"{log.stem}.trace.json")
        check_writable(target, "-o", (log,))
        write_result(target, "-o", json.dumps(log_trace(found)))
    click.echo(f"{target}: open it in Perfetto, or at chrome://tracing")
