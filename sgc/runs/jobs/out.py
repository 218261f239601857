"""Opens the file of a job's results, by its suffix, and says which rows are done in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgc.errors import OutputError, UsageError
from sgc.runs.jobs.csv_out import CsvOut
from sgc.runs.jobs.jsonl_out import JsonlOut
from sgc.runs.jobs.out_file import OutFile
from sgc.runs.jobs.parquet_out import ParquetOut, journal_of
from sgc.runs.rows.hashes import Hashes

_BY_SUFFIX: dict[str, Callable[[Path], OutFile]] = {
    "": JsonlOut, ".jsonl": JsonlOut, ".ndjson": JsonlOut,
    ".csv": CsvOut, ".parquet": ParquetOut, ".pq": ParquetOut,
}  # fmt: skip


def open_out(path: Path) -> OutFile:
    """Opens and locks a file of results: CSV, Parquet, or JSON lines, also without a suffix. Raises
    UsageError for another suffix, and if it cannot be written."""
    opened = _BY_SUFFIX.get(path.suffix.lower())
    if opened is None:
        raise UsageError(
            f"--out {path}: results are not written as {path.suffix}",
            hint=f"name it {', '.join(filter(None, _BY_SUFFIX))}; .jsonl is a JSON object a line",
        )
    target = journal_of(path) if opened is ParquetOut else path
    try:
        target.open("ab").close()
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror}") from error
    return opened(path)


class DoneRows:
    """The rows that are done, by their keys' hashes; n_failed: of them."""

    def __init__(self) -> None:
        self._rows = Hashes(has_values=True)
        self.n_failed = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def digest(self, key: str) -> int | None:
        """The digest of the arguments that a row was done with; None if it is not done."""
        return self._rows.get(key)

    def add_all(self, out: OutFile, is_retried: Callable[[str], bool] | None) -> None:
        """Adds what a file has. Raises OutputError for a row that is there twice."""
        if isinstance(out, ParquetOut):
            out.unpack()
        for each in out.done(is_retried):
            if not self._rows.add(each.key, each.digest):
                raise OutputError(
                    f"{out.path} has the row {each.key!r} twice",
                    hint="remove one of the two lines",
                )
            self.n_failed += bool(each.error)


class OutWatch:
    """Reads a job's log and its file of results together: a row that is in the file is done, and
    the log need not remember it.

    out: None for stdout, where nothing tells which rows were received.
    """

    def __init__(
        self, out: OutFile | None, name: str, is_retried: Callable[[str], bool] | None
    ) -> None:
        self.done = DoneRows()
        self.is_ours = False
        self.spent = 0.0  # dollars, by the log
        self._out, self.name, self._is_retried = out, name, is_retried

    def job(self, record: dict[str, Any]) -> None:
        if self._out is not None and not self.is_ours and record["out"] == self.name:
            self.is_ours = True
            self.done.add_all(self._out, self._is_retried)

    def is_done(self, row: str) -> bool:
        return row in self.done

    def line(self, line: bytes) -> None:
        if b'"cost_usd":' in line:
            self.spent += _cost(line)


def _cost(line: bytes) -> float:
    import json

    try:
        reply = json.loads(line)["reply"]
        usage = reply.get("usage", reply)
        is_own = not (usage.get("from_shared") or usage.get("from_cache"))
        return float(usage.get("cost_usd") or 0.0) if is_own else 0.0
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0.0  # the log's reader reports a damaged line
