"""The rows of a run or a job as a table: inputs, variables, usage, and what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.errors import UsageError
from sgc.viewer.texts import cut, plain

MAX_ROWS = 10_000
_MAX_LINE = 64 << 20  # bytes
_MAX_CELL = 20_000  # characters


@dataclass(frozen=True, slots=True)
class Rows:
    """rows: as the page shows them; n_all, n_failed: including rows that are left out."""

    rows: tuple[dict[str, Any], ...]
    n_all: int
    n_failed: int


def read_results(path: Path) -> Rows:
    """The results of a job, in JSON lines: the first rows, and as many that failed.

    Raises UsageError for a line that is not a record of `sgc run --out`.
    """
    kept: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    n_all = n_failed = 0
    for record in _records(path):
        n_all += 1
        is_failed = "error" in record
        n_failed += is_failed
        if len(kept) < MAX_ROWS:
            kept.append(_row(record))
        elif is_failed and len(failed) < MAX_ROWS:
            failed.append(_row(record))
    if not n_all:
        raise UsageError(f"{path}: there is no row in it")
    return Rows((*kept, *failed), n_all, n_failed)


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_MAX_LINE):
            number += 1
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{path}:{number}: no JSON object: {error}") from error
            if not (isinstance(record, dict) and "key" in record and "inputs" in record):
                raise UsageError(
                    f"{path}:{number}: expected a record of a job's results, with key and inputs",
                    hint="sgc run PROG --rows ROWS --out RESULTS.jsonl writes them",
                )
            yield record


def is_results(path: Path) -> bool:
    """Whether a file looks like a job's results in JSON lines."""
    try:
        return next(_records(path), None) is not None
    except UsageError:
        return False


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"key": str(record["key"]), "inputs": _cells(record["inputs"])}
    if "error" in record:
        error = record["error"]
        error = error if isinstance(error, dict) else {"message": str(error)}
        found["error"] = cut(f"{error.get('type', 'Error')}: {error.get('message', '')}", _MAX_CELL)
        return found
    found["variables"] = _cells(record.get("variables", {}))
    found["return"] = plain(record.get("return"))
    usage = _cells(record.get("usage", {})).items()
    found["usage"] = {name: value for name, value in usage if type(value) in (int, float)}
    others = record.get("streams", ())
    streams = [{"text": record.get("text", "")}, *(others if isinstance(others, list) else ())]
    found["streams"] = [
        [str(each.get("name", "")), cut(str(each.get("text", "")))]
        for each in streams
        if isinstance(each, dict)
    ]
    return found


def _cells(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        return {}
    return {
        str(name): cut(value, _MAX_CELL) if isinstance(value, str) else plain(value)
        for name, value in values.items()
    }
