"""Rows of a Parquet file, read a few at a time; needs pyarrow."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sgc.errors import UsageError
from sgc.runs.rows.records import Raw

UNIT = "row"
_AT_ONCE = 512
_MISSING = "Parquet needs pyarrow, which is not installed"


def require_pyarrow() -> tuple[Any, Any]:
    """pyarrow, and its module for Parquet."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(_MISSING, hint="pip install 'sgc[parquet]'") from error
    return pyarrow, pyarrow.parquet


def read(path: Path) -> Iterator[Raw]:
    """A cell that is null is no argument."""
    arrow, parquet = require_pyarrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield _raw(number, row)
    except (arrow.ArrowException, OSError) as error:
        raise UsageError(f"{path}: row {number + 1}: cannot be read as Parquet: {error}") from error


def _raw(number: int, row: dict[str, Any]) -> Raw:
    try:
        return Raw(number, arguments_of(row))
    except TypeError as error:
        return Raw(number, why=str(error))


def arguments_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row as arguments; raises TypeError for a value that JSON has not."""
    return {name: _plain(value) for name, value in row.items() if value is not None}


def _plain(value: Any) -> Any:
    """A cell as JSON would hold it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"a cell cannot be a {type(value).__name__}")
