"""The options of `sgc run --rows`, in one table: how rows are read, run and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from sgc.cli.columns import COLUMNS
from sgc.cli.help import Choice, option

F = TypeVar("F", bound=Callable[..., Any])

PROGRESS = ("auto", "bar", "json", "none")
ROW_FORMATS = ("jsonl", "csv", "json", "parquet")

_OPTIONS = (
    option("--rows", metavar="FILE", aliases=("--input",), help="Run once for each row of a file. "
           "It may be a quoted pattern of files, or - for stdin: JSON lines, CSV, Parquet or a "
           "JSON array of arguments, by the suffix; custom_id is the row's key."),
    option("--rows-format", type=Choice(ROW_FORMATS), help="With --rows: the format of the file, "
           "whatever its suffix."),
    *COLUMNS,
    option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="With --rows: only the "
           "first N."),
    option("--sample", type=click.IntRange(min=1), metavar="N", help="With --rows: only N "
           "of them, drawn by --seed, else by 0."),
    option("--skip-bad-rows", is_flag=True, help="With --rows: leave out and count invalid rows. "
           "Else they are an error before anything runs."),
    option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", aliases=("--output",),
           help="With --rows: where results go. A record a row, as they end: .jsonl (also without "
           "a suffix), .csv or .parquet. Else on stdout."),
    option("--ordered", is_flag=True, help="With --rows: write them in their order."),
    option("--force", is_flag=True, help="With --out: replace a file that is there and is "
           "not this job's."),
    option("--order", type=Choice(["plan", "given"]), help="With --rows: the order in which they "
           "start. plan, from -O1: rows with a common prefix one after another."),
    option("--reorder-fields", is_flag=True, help="With --rows: reorder the fields of prompts that "
           "are tables, so that rows share longer prefixes; this changes the prompts."),
    option("--max-errors", type=click.IntRange(min=0), metavar="N", help="With --rows: end when "
           "more rows "
           "than this have failed. Else all are run."),
    option("--retry-errors", is_flag=True, help="With --rows, --out and --resume: run rows "
           "again that have failed."),
    option("--batch", is_flag=True, help="With --rows and --resume, on a provider: ask "
           "through its batch API, for half the price and within a day. The same command "
           "goes on with what is submitted."),
    option("--cancel-batches", is_flag=True, help="With --batch: run nothing; cancel what "
           "goes on at the provider."),
    option("--progress", type=Choice(PROGRESS), help="With --rows: auto is a bar on a "
           "terminal, else a JSON line a minute on stderr.  [default: auto]"),
)  # fmt: skip


def job_options(command: F) -> F:
    for each in reversed(_OPTIONS):
        command = each(command)
    return command


@dataclass(frozen=True, slots=True)
class JobAsked:
    """What these options say; without --rows, nothing. order: None for the level's default."""

    rows: str | None = None
    rows_format: str | None = None
    key: str | None = None
    ignore_columns: bool = False
    limit: int | None = None
    sample: int | None = None
    skip_bad_rows: bool = False
    out: Path | None = None
    ordered: bool = False
    force: bool = False
    order: str | None = None
    reorder_fields: bool = False
    max_errors: int | None = None
    retry_errors: bool = False
    batch: bool = False
    cancel_batches: bool = False
    progress: str | None = None

    @property
    def given(self) -> Mapping[str, Any]:
        """The names of the given options other than --rows, as they are written."""
        names = [row.name for row in fields(self) if row.name != "rows"]
        return {"--" + name.replace("_", "-"): getattr(self, name) for name in names}
