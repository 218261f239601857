"""The options of `sgc run --rows`, in one table: how rows are read, run and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

PROGRESS = ("auto", "bar", "json", "none")
ROW_FORMATS = ("jsonl", "csv", "json", "parquet")

EXIT_CODES = """\b
Exit codes:
    0  all is done
    1  an error, or more rows failed than --max-errors
    2  a wrong command, or rows that do not fit
  100  with --rows: done, and some rows failed
  101  with --rows: the budget of --max-cost is spent
  130  interrupted (Ctrl-C)
"""

_OPTIONS = (
    click.option("--rows", metavar="FILE", help="Run once for each row: a file, a quoted pattern "
                 "of files, or - for stdin. JSON lines, CSV, Parquet or a JSON array of arguments, "
                 "by the suffix; custom_id is the row's key."),
    click.option("--rows-format", type=click.Choice(ROW_FORMATS), help="With --rows: whatever the "
                 "suffix says."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="With --rows: only the "
                 "first N."),
    click.option("--sample", type=click.IntRange(min=1), metavar="N", help="With --rows: only N "
                 "of them, drawn by --seed, else by 0."),
    click.option("--skip-bad-rows", is_flag=True, help="With --rows: leave out and count what is "
                 "no row, or does not fit. Else an error before anything runs."),
    click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="With --rows: "
                 "where to write a record a row, as they end: .csv, .parquet, else JSON lines. "
                 "Else on stdout."),
    click.option("--ordered", is_flag=True, help="With --rows: write them in their order."),
    click.option("--force", is_flag=True, help="With --out: replace a file that is there and is "
                 "not this job's."),
    click.option("--order", type=click.Choice(["plan", "given"]), help="With --rows: how they "
                 "start. plan, from -O1: rows with a common prefix one after another."),
    click.option("--reorder-fields", is_flag=True, help="With --rows: move the fields of prompts "
                 "that are tables so that more is shared; the prompts change."),
    click.option("--max-errors", type=click.IntRange(min=0), help="With --rows: end when more rows "
                 "than this have failed. Else all are run."),
    click.option("--retry-errors", is_flag=True, help="With --rows, --out and --resume: run rows "
                 "again that have failed."),
    click.option("--progress", type=click.Choice(PROGRESS), help="With --rows: auto is a bar on a "
                 "terminal, else a JSON line a minute on stderr.  [default: auto]"),
)  # fmt: skip


def job_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class JobAsked:
    """What these options say; without --rows, nothing. order: None for the level's default."""

    rows: str | None = None
    rows_format: str | None = None
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
    progress: str | None = None

    @staticmethod
    def taken(options: dict[str, Any]) -> JobAsked:
        """Takes these options out of those of a command."""
        return JobAsked(**{row.name: options.pop(row.name) for row in fields(JobAsked)})

    @property
    def given(self) -> Mapping[str, Any]:
        """Those beside --rows, as they are written."""
        names = [row.name for row in fields(self) if row.name != "rows"]
        return {"--" + name.replace("_", "-"): getattr(self, name) for name in names}
