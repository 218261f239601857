"""Rows of JSON lines: one object a line; empty lines are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sgc.runs.rows.records import MAX_ROW_BYTES, Raw
from sgc.runtime.engine.text import strict_json

UNIT = ""
_TOO_LONG = f"a row has at most {MAX_ROW_BYTES} bytes"


def read(path: Path) -> Iterator[Raw]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_ROW_BYTES + 1):
            number += 1
            if len(line) > MAX_ROW_BYTES:
                _skip_line(file, line)
                yield Raw(number, why=_TOO_LONG)
            elif line := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
                yield _parsed(number, line)


def _parsed(number: int, line: bytes) -> Raw:
    try:
        return Raw(number, strict_json.load(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        return Raw(number, why=f"expected UTF-8: {error.reason}")
    except (ValueError, RecursionError) as error:
        return Raw(number, why=f"expected a JSON object, found: {told(error)}")


def told(error: Exception) -> str:
    """What is wrong with a line that is not JSON; the file's reader adds the line's number."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')}, at column {error.colno}"
    return str(error)


def _skip_line(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_ROW_BYTES)
