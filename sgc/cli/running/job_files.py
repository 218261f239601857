"""The files of a job: its log, its results, and what it goes on with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import click

from sgc.cli.columns import columns_of
from sgc.cli.output.results import refuse_input
from sgc.cli.programs.source import path_of
from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.logs import LogAsked, check_place, open_log
from sgc.errors import UsageError
from sgc.runs.jobs.out import OutWatch, open_out
from sgc.runs.jobs.out_file import OutFile
from sgc.runs.jobs.records import Record, dumped
from sgc.runs.rows.source import RowSource, open_source
from sgc.runs.rows.spool import release
from sgc.runtime.executor.log.run_log import RunLog


@dataclass(frozen=True, slots=True)
class JobFiles:
    """Open files. watch: what earlier runs of the job have done."""

    out: OutFile | None
    log: RunLog | None
    watch: OutWatch


class Stdout:
    """Results on stdout, as JSON lines. What programs print goes elsewhere meanwhile."""

    def __init__(self) -> None:
        self._file = sys.stdout

    def write(self, record: Record) -> None:
        click.echo(dumped(record), file=self._file)


def job_source(asked: JobAsked, logs: LogAsked, held: ExitStack) -> RowSource:
    """The rows that are asked for. What can be read only once is kept beside the log."""
    assert asked.rows is not None
    held.callback(release)
    meant = columns_of(asked.key, asked.ignore_columns)
    return open_source(asked.rows, asked.rows_format, logs.spool, meant)


@contextmanager
def open_files(
    asked: JobAsked, logs: LogAsked, source: RowSource, program: str
) -> Iterator[JobFiles]:
    """Opens and locks the files. Raises UsageError for results that are there and not this job's,
    OutputError or RunLogError for files that another job writes."""
    if asked.retry_errors and (logs.resume is None or asked.out is None):
        raise UsageError("--retry-errors is for a job that goes on: --resume FILE and --out FILE")
    if logs.path is not None:
        check_place(logs.path)  # before a file of results is made
    with ExitStack() as held:
        out = None
        if asked.out is not None:
            if logs.path is not None and asked.out.resolve() == logs.path.resolve():
                raise UsageError(
                    f"--out {asked.out} is the log too", hint="give each a file of its own"
                )
            refuse_input(asked.out, "--out", (*source.paths, path_of(program)))
            out = held.enter_context(open_out(asked.out))
        name = "" if asked.out is None else str(asked.out.absolute())
        watch = OutWatch(out, name, _retried(asked, logs))
        log = open_log(logs, watch)
        if log is not None:
            held.enter_context(log)
        if out is not None and not watch.is_ours:
            _take_over(out, asked, logs)
        if log is not None and not watch.is_ours:
            log.append({"kind": "job", "out": name, "rows": asked.rows})
            log.sync()  # without this record, finished results would be taken for another job's
        yield JobFiles(out, log, watch)


def _take_over(out: OutFile, asked: JobAsked, logs: LogAsked) -> None:
    """Empties a file that no run of this job has written, if it may."""
    if out.is_empty:
        return
    if not asked.force:
        why = (
            "" if logs.resume is None else f", and {logs.resume} does not say that it is this job's"
        )
        raise UsageError(
            f"--out {asked.out}: there is one already{why}",
            hint="name another file, or replace it with --force",
        )
    out.empty()


def _retried(asked: JobAsked, logs: LogAsked) -> Callable[[str], bool] | None:
    """Tells which failed rows are to be run again."""
    if asked.retry_errors:
        return lambda error: True
    if logs.retry_effect or logs.skip_effect:
        return lambda error: error == "UnknownOutcome"
    return None
