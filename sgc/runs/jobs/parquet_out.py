"""Results as Parquet, which is written when all rows are done: its end says what is in it.

Until then they are JSON lines in a file beside it, which a job goes on with. Needs pyarrow.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sgc.errors import OutputError
from sgc.runs.jobs.jsonl_out import JsonlOut
from sgc.runs.jobs.records import COLUMNS, Record, flat
from sgc.runs.rows.parquet import require_pyarrow

_GROUP = 4096  # rows that are held at once
_INTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")


def journal_of(path: Path) -> Path:
    """Where the rows are until all are done."""
    return path.with_name(path.name + ".rows.jsonl")


class ParquetOut(JsonlOut):
    def __init__(self, path: Path) -> None:
        require_pyarrow()
        super().__init__(journal_of(path))
        self._parquet = path

    @property
    def is_empty(self) -> bool:
        return not self._size and not self._parquet.exists()

    def empty(self) -> None:
        super().empty()
        self._parquet.unlink(missing_ok=True)

    def unpack(self) -> None:
        """Writes the lines again from a complete file, so that more can be added."""
        if self._size or not self._parquet.exists():
            return
        _, parquet = require_pyarrow()
        try:
            with parquet.ParquetFile(self._parquet) as file:
                for batch in file.iter_batches(batch_size=_GROUP):
                    lines = [self._bytes(_record(row)) for row in batch.to_pylist()]
                    self._append(b"".join(lines))
        except (OSError, ValueError, KeyError) as error:  # ArrowInvalid is a ValueError
            self._cut(0)
            raise OutputError(
                f"{self._parquet} is no file that a job has written: {error}",
                hint="name another --out, or replace this one with --force and a new log",
            ) from error

    def finish(self) -> None:
        """Writes the Parquet file, at once or not at all, and removes the lines."""
        super().finish()
        arrow, parquet = require_pyarrow()
        schema = schema_of(arrow)
        target = self._parquet.resolve()
        new = target.with_name(target.name + ".written")
        try:
            with parquet.ParquetWriter(new, schema) as writer:
                for group in self._groups():
                    writer.write_table(table_of(arrow, group, schema))
            with new.open("rb") as file:
                os.fsync(file.fileno())
            if target.exists():
                new.chmod(stat.S_IMODE(target.stat().st_mode))
            os.replace(new, target)
            self.path.unlink()
        except BaseException as error:
            new.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise self._unwritable(error) from error
            raise

    def _groups(self) -> Iterator[list[dict[str, Any]]]:
        with open(os.dup(self._fd), "rb") as file:
            file.seek(0)
            while lines := list(islice(file, _GROUP)):
                yield [flat(json.loads(line)) for line in lines]


def schema_of(arrow: Any) -> Any:
    """The columns of results and their types."""
    return arrow.schema([(name, _type(arrow, name)) for name in COLUMNS])


def table_of(arrow: Any, rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Flat records as a table of this schema; what a record lacks is null."""
    columns = {name: [_cell(row.get(name)) for row in rows] for name in schema.names}
    return arrow.table(columns, schema=schema)


def _cell(value: Any) -> Any:
    """A value whose text is valid Unicode: half of a surrogate pair is escaped, as in JSON."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def _type(arrow: Any, name: str) -> Any:
    if name in _INTS:
        return arrow.int64()
    return arrow.float64() if name == "cost_usd" else arrow.string()


def _record(row: dict[str, Any]) -> Record:
    """The record that a flat one was made of; a return value that is no text stays its JSON."""
    found: Record = {"key": row["key"], "inputs": json.loads(row["inputs"])}
    if row["error_type"] is not None:
        found["error"] = {"type": row["error_type"], "message": row["error"]}
        return found
    found |= {name: row[name] for name in ("text", "return")}
    for name in ("variables", "streams"):
        if row[name] is not None:
            found[name] = json.loads(row[name])
    usage = {name: row[name] for name in (*_INTS, "cost_usd")}
    return found | {"usage": {name: value for name, value in usage.items() if value is not None}}
