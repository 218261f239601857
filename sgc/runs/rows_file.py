"""The rows of a file as a list, for commands that need all of them at once."""

from __future__ import annotations

from pathlib import Path

from sgc.errors import UsageError
from sgc.runs.rows.records import MAX_ROW_BYTES, BadRow, InputRow
from sgc.runs.rows.source import open_source
from sgc.runs.rows.survey import Keys

__all__ = ["MAX_ROW_BYTES", "InputRow", "read_rows"]


def read_rows(path: str | Path) -> list[InputRow]:
    """The rows of a file. Raises UsageError, naming the line, for a line that is not a row, and for
    a repeated key.
    """
    source = open_source(str(path))
    keys, rows = Keys(source), list[InputRow]()
    for row in source.read():
        if isinstance(row, BadRow):
            raise UsageError(f"{row.place}: {row.why}")
        keys.add(row)
        rows.append(row)
    if not rows:
        raise UsageError(f"{path} has no rows", hint="one JSON object of arguments a line")
    return rows
