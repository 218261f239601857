"""`sgc run --rows`: runs a program once for each row, as a job that goes on where it stopped."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from sgc.cli.main import EXIT_BUDGET, EXIT_INTERRUPTED, EXIT_SOME_FAILED
from sgc.cli.programs.given_rows import GivenRows
from sgc.cli.programs.loading import Loaded
from sgc.cli.running.batching import BATCHED_ROWS, BATCHED_THREADS, tell_batches
from sgc.cli.running.job_files import JobFiles, Stdout
from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.logs import LogAsked
from sgc.cli.running.progress import Progress, open_progress, say
from sgc.errors import GuardError, LogOptionsError, SgcError, UsageError
from sgc.interpreter.calls import Canceller, run_eager
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.batch import MAX_CONCURRENCY, BatchOptions
from sgc.runs.crew import Row
from sgc.runs.endpoint import Endpoint
from sgc.runs.jobs.job import Job, JobParts, check_errors
from sgc.runs.jobs.tally import Tally
from sgc.runs.jobs.windows import OpenRows, Windows
from sgc.runs.rows.records import InputRow
from sgc.runtime.executor.interface.argument_shapes import with_tuples
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


@dataclass(frozen=True, slots=True)
class Begun:
    """rows: those that are not done; is_over: whether all are done."""

    rows: OpenRows
    tally: Tally
    is_over: bool


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job: the program, its rows and files, and how it is run."""

    found: Loaded
    rows: GivenRows
    files: JobFiles
    asked: JobAsked
    logs: LogAsked
    max_concurrency: int | None = None
    quiet: bool = False
    stdout: Stdout = field(default_factory=Stdout)

    def begin(self) -> Begun:
        """Reads up to the first row that is not done, and reports how many are done."""
        done, n_rows = self.files.watch.done, self.rows.look(self.found.program).n_rows
        if len(done) and not self.quiet:
            failed = f" ({done.n_failed:,} of them failed)" if done.n_failed else ""
            click.echo(f"resumes: {len(done):,} of {n_rows:,} rows are done{failed}", err=True)
        rows = OpenRows(self.rows.read(), done)
        is_over = rows.is_over()
        n_done = rows.n_done if is_over else min(len(done), n_rows)
        return Begun(rows, Tally(n_rows, n_done, done.n_failed), is_over)

    def run(self, endpoint: Endpoint | None, options: RunOptions, begun: Begun) -> None:
        """Runs the rows that are not done; exits with a code of its own if some failed, the budget
        is spent, or it is interrupted. endpoint: None if all are done.
        """
        tally = begun.tally
        start_s = perf_counter()
        budget = None
        if endpoint is not None:
            progress = open_progress(self.asked.progress, tally, self.quiet)
            try:
                job = self._job(endpoint, options, begun, progress)
                _wait(job)
                budget = job.budget
            except (KeyboardInterrupt, SystemExit) as ended:
                progress.close()
                self._tell_how_to_go_on(tally, "interrupted")
                if isinstance(ended, SystemExit):
                    raise
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from ended
            except SgcError as error:
                progress.close()
                if not isinstance(error, GuardError | LogOptionsError):  # this command does not
                    self._tell_how_to_go_on(tally, "ended by an error")
                raise
            finally:
                progress.close()
                tell_batches(endpoint)
        if budget is None:
            tally.n_before = begun.rows.n_done
        if not self.quiet:
            click.echo(tally.summary(perf_counter() - start_s), err=True)
        if budget is not None:
            why = f"the budget is spent: {budget.message}"
            self._tell_how_to_go_on(tally, why, " with a larger --max-cost")
            raise click.exceptions.Exit(EXIT_BUDGET)
        check_errors(tally, self.asked.max_errors)  # the cost of earlier runs, if no row was left
        if self.files.out is not None:
            self.files.out.finish()
        if tally.n_all_failed:
            raise click.exceptions.Exit(EXIT_SOME_FAILED)

    def _job(
        self, endpoint: Endpoint, options: RunOptions, begun: Begun, progress: Progress
    ) -> Job:
        loaded, backend = self.found.program, endpoint.backend
        sharing = loaded.sharing(backend) if isinstance(loaded, Program) else backend

        def made(given: InputRow) -> Row:
            return _row(self.found, given, sharing, options)

        how = self._batch_options(loaded)
        windows = Windows(begun.rows, made, how, backend, options.max_tokens)
        return Job(
            JobParts(
                windows, how, backend, self.files.out or self.stdout, self.files.log, begun.tally,
                progress.update, self._note, self.asked.ordered,
            )
        )  # fmt: skip

    def _batch_options(self, loaded: Program | Function) -> BatchOptions:
        default = loaded.default_order if isinstance(loaded, Program) else "given"
        n_rows = BATCHED_ROWS if self.asked.batch else MAX_CONCURRENCY
        return BatchOptions(
            num_threads=BATCHED_THREADS if self.asked.batch else "auto",
            max_concurrency=self.max_concurrency or n_rows,
            max_errors=self.asked.max_errors,
            order=self.asked.order or default,
            reorder_fields=self.asked.reorder_fields,
        )

    def _note(self, note: str) -> None:
        if not self.quiet:
            say(note)

    def _tell_how_to_go_on(self, tally: Tally, why: str, changed: str = "") -> None:
        done = f"{tally.n_done:,} of {tally.n_rows:,} rows are done"
        if self.logs.path is None:
            how = "without --resume FILE, a run of them begins anew"
        else:
            how = f"this goes on{changed}:\n  {_command(self.logs)}"
        click.echo(f"sgc: {why}: {done}; {how}", err=True)


def _row(found: Loaded, given: InputRow, backend: Backend, options: RunOptions) -> Row:
    """A compiled row, or one interpreted as a whole or from where the compiled part ends."""
    loaded, function = found.program, found.function
    arguments = {n: v for n, v in given.arguments.items() if n not in found.bound}
    if isinstance(loaded, Program):
        arguments = with_tuples(loaded.graph, arguments)
        if function is None or not may_deopt(loaded.graph):
            return loaded.row(arguments, backend, options, given.key)
    python = loaded if isinstance(loaded, Function) else function
    assert python is not None
    chosen, canceller = replace(options, row=given.key), Canceller()
    bound = _bound(python, arguments, given)

    def interpret(how: RunOptions) -> RunResult:
        return run_eager(python, bound, backend, how, shared, None, canceller)

    def call() -> RunResult:
        if isinstance(loaded, Function):
            return interpret(chosen)
        return run_with_deopt(loaded, backend, arguments, chosen, interpret)

    return Row(call=call, cancel=canceller.cancel, how="interpreted")


def _bound(function: Function, arguments: Mapping[str, Any], given: InputRow) -> dict[str, Any]:
    try:
        return function.signature.bind((), function.signature.objects(arguments))
    except SgcError as error:
        raise UsageError(f"{given.place}: {error.message}", hint=error.hint) from error


def _wait(job: Job) -> None:
    """Waits for a job. An interrupt ends it first; another one ends the process at once."""
    task = shared.run(_begin(job))
    ended = asyncio.run_coroutine_threadsafe(_end_of(task), shared.loop)
    try:
        ended.result()
    except BaseException:
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
        shared.loop.call_soon_threadsafe(task.cancel)
        asyncio.run_coroutine_threadsafe(_end_of(task), shared.loop).result()
        raise
    task.result()


async def _begin(job: Job) -> asyncio.Task[None]:
    return asyncio.ensure_future(job.run())


async def _end_of(task: asyncio.Task[None]) -> None:
    await asyncio.wait({task})


def _command(logs: LogAsked) -> str:
    """The command that goes on with this job."""
    context = click.get_current_context(silent=True)
    argv = [] if context is None else [*context.find_root().meta.get("sgc.argv", [])]
    if logs.log is not None:
        argv = [_resuming(each) for each in argv]
    is_script = Path(sys.argv[0]).name == "sgc"
    return shlex.join(["sgc", *argv] if is_script else [sys.executable, "-m", "sgc", *argv])


def _resuming(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"--resume{equals}{value}" if name == "--log" else word
