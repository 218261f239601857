"""Results as CSV: all rows have the same columns; values that are not texts are JSON."""

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
        at, is_over = 0, False

        def lines() -> Iterator[str]:
            nonlocal at, is_over
            with open(os.dup(self._fd), "rb") as file:
                file.seek(0)
                for line in file:
                    at += len(line)
                    yield line.decode("utf-8", "surrogateescape")
            is_over = True

        rows, number, start = csv.reader(lines(), strict=True), 0, 0
        while True:
            number += 1
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                if is_over:
                    return  # inside a record that was cut off
                raise self._foreign(number, str(error)) from error
            if not self._ends_line(at, number):
                return
            if number > 1:
                yield self._done(cells, number, start, at)
            elif tuple(cells) != COLUMNS:
                raise self._foreign(1, f"expected the columns {', '.join(COLUMNS)}")
            start = at

    def _ends_line(self, at: int, number: int) -> bool:
        """Whether a record is whole. Raises OutputError if another program has ended its line."""
        end = os.pread(self._fd, 2, at - 2)
        if end.endswith(b"\n") and end != b"\r\n":
            raise self._foreign(number, "its line does not end with CR LF")
        return end == b"\r\n"

    def _done(self, cells: list[str], number: int, start: int, end: int) -> Done:
        if len(cells) != len(COLUMNS):
            raise self._foreign(number, f"expected {len(COLUMNS)} cells, found {len(cells)}")
        found = dict(zip(COLUMNS, cells, strict=True))
        try:
            digest = digest_of(json.loads(found["inputs"]))
        except (ValueError, RecursionError) as error:
            raise self._foreign(number, str(error)) from error
        return Done(found["key"], digest, found["error_type"], start, end)
