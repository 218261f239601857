"""Reads the rows of a batch from a file: one JSON object of arguments per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.errors import UsageError

MAX_ROW_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class InputRow:
    """key: the row's `custom_id`, else its index; arguments: the program's; line: from 1."""

    key: str
    arguments: dict[str, Any]
    line: int


def read_rows(path: str | Path) -> list[InputRow]:
    """The rows of a file; empty lines are skipped.

    Raises UsageError, naming the line, for a line that is not a row, and for a repeated key.
    """
    rows: list[InputRow] = []
    lines: dict[str, int] = {}
    for number, text in _lines(Path(path)):
        row = _row(f"{path}:{number}", text, len(rows), number)
        if row.key in lines:
            raise UsageError(
                f"{path}:{number}: the key {row.key!r} is that of line {lines[row.key]} too",
                hint="give each row a custom_id of its own",
            )
        lines[row.key] = number
        rows.append(row)
    if not rows:
        raise UsageError(f"{path} has no rows", hint="one JSON object of arguments a line")
    return rows


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(line) > MAX_ROW_BYTES:
                    raise UsageError(f"{path}:{number}: a row has at most {MAX_ROW_BYTES} bytes")
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text:
                    yield number, text
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}:{number}: expected UTF-8: {error.reason}") from error


def _row(place: str, text: str, index: int, line: int) -> InputRow:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: expected a JSON object, found: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{place}: expected a JSON object, found {type(found).__name__}")
    key = found.pop("custom_id", index)
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise UsageError(f"{place}: custom_id must be a text or a number, found {key!r}")
    return InputRow(str(key), found, line)
