"""`sgc run --rows … --batch`: requests go through a provider's batch API (docs/batch_apis.md)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.progress import say
from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.loop import shared

if TYPE_CHECKING:
    from sgc.runtime.executor.backends.providers.batched import Batching

# Rows at once: a batch has no more requests than rows ask. A row that waits takes some 55 KB.
BATCHED_ROWS = 8192
BATCHED_THREADS = 512  # for rows that are interpreted
SUFFIX = ".batches"


def check_batching(
    job: JobAsked, engine: str | None, log: Path | None, of_each: Mapping[str, Any]
) -> None:
    """Raises UsageError for options that do not fit. of_each: options of single requests."""
    if not job.batch:
        raise UsageError("--cancel-batches is for a job with --batch")
    if not (engine or "").startswith(SCHEMES):
        raise UsageError(
            "--batch is for model providers", hint="--engine openai:MODEL or anthropic:MODEL"
        )
    if log is None:
        raise UsageError(
            "--batch needs --resume FILE: a batch may take a day, and its log says what is "
            "submitted already"
        )
    for name, value in of_each.items():
        if value is not None:
            raise UsageError(f"{name} is for requests one by one, and --batch has none")


def batching(log: RunLog, asks_errors_again: bool, quiet: bool) -> Batching:
    from sgc.runtime.executor.backends.providers.batched import Batching
    from sgc.runtime.executor.tools.threads import n_running

    def note(line: str) -> None:
        if not quiet:
            with suppress(OSError):  # nobody reads it any more, which is no error of a row
                say(line)

    shared.idle.count_also(n_running)
    journal = Path(log.path + SUFFIX)
    return Batching(journal, shared.idle, note, log.sync, asks_errors_again)


def cancel_batches(endpoint: Endpoint) -> None:
    """Cancels the batches that go on at the provider, and reports them."""
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        click.echo(line, err=True)

    shared.run(endpoint.backend.cancel_batches(tell))  # type: ignore[attr-defined]
    kept = "what they had answered is kept" if told else "no batch goes on"
    click.echo(kept, err=True)


def tell_batches(endpoint: Endpoint) -> None:
    """Reports the batches that go on at the provider although the job has ended."""
    found = getattr(endpoint.backend, "outstanding", ())
    if not found:
        return
    shown = ", ".join(found[:10]) + (", …" if len(found) > 10 else "")
    noun = "batch goes" if len(found) == 1 else "batches go"
    click.echo(
        f"sgc: {len(found)} {noun} on at the provider, and will be paid for ({shown}); the same "
        "command takes their results, with --cancel-batches it cancels them",
        err=True,
    )
