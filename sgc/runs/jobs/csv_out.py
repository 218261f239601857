"""Results as CSV: a row has the same columns whatever the program did; what is no text is JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator

from sgc.runs.jobs.out_file import OutFile
from sgc.runs.jobs.records import COLUMNS, Done, Record, digest_of, flat
from sgc.runs.rows.records import MAX_ROW_BYTES

_HEADER = (",".join(COLUMNS) + "\r\n").encode("ascii")


class CsvOut(OutFile):
    def _bytes(self, record: Record) -> bytes:
        text = io.StringIO(newline="")
        told = flat(record)
        csv.writer(text).writerow([told.get(name, "") for name in COLUMNS])
        line = text.getvalue().encode("utf-8", "backslashreplace")
        return line if self._size else _HEADER + line

    def _first(self) -> int:
        return len(_HEADER) if self._size >= len(_HEADER) else 0

    def _records(self) -> Iterator[Done]:
        csv.field_size_limit(8 * MAX_ROW_BYTES)
        at = 0

        def lines() -> Iterator[str]:
            nonlocal at
            with open(os.dup(self._fd), "rb") as file:
                file.seek(0)
                for line in file:
                    at += len(line)
                    yield line.decode("utf-8", "surrogateescape")

        number, start = 0, 0
        for number, cells in enumerate(_whole(csv.reader(lines(), strict=True)), 1):
            if not self._ends_line(at):
                return
            if number == 1:
                if tuple(cells) != COLUMNS:
                    raise self._foreign(1, f"expected the columns {', '.join(COLUMNS)}")
            else:
                yield self._done(cells, number, start, at)
            start = at

    def _ends_line(self, at: int) -> bool:
        return os.pread(self._fd, 2, at - 2) == b"\r\n"

    def _done(self, cells: list[str], number: int, start: int, end: int) -> Done:
        if len(cells) != len(COLUMNS):
            raise self._foreign(number, f"expected {len(COLUMNS)} cells, found {len(cells)}")
        found = dict(zip(COLUMNS, cells, strict=True))
        try:
            digest = digest_of(json.loads(found["inputs"]))
        except (ValueError, RecursionError) as error:
            raise self._foreign(number, str(error)) from error
        return Done(found["key"], digest, found["error_type"], start, end)


def _whole(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """The rows up to one that the file ends inside of."""
    while True:
        try:
            yield next(rows)
        except (StopIteration, csv.Error):
            return
