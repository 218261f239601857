"""The options that say what the columns of --rows are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sgc.cli.help import option
from sgc.runs.rows.records import KEY, Columns

F = TypeVar("F", bound=Callable[..., Any])

COLUMNS = (
    option("--key", metavar="COLUMN", help="With --rows: the column, or field, with the row's "
           "key. Else custom_id."),
    option("--ignore-columns", is_flag=True, help="With --rows: leave out columns, or fields, "
           "that are no argument of the program. Else an error."),
)  # fmt: skip


def columns_of(key: str | None, ignore_columns: bool) -> Columns:
    """The columns that these two options describe."""
    return Columns(KEY if key is None else key, ignore_columns)


def columns_options(command: F) -> F:
    """Adds the options of the columns of --rows to a command that runs nothing."""
    for each in reversed(COLUMNS):
        command = each(command)
    return command
