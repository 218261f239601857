"""Results as JSON lines: the record of a row is an object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from sgc.runs.jobs.out_file import OutFile
from sgc.runs.jobs.records import Done, Record, digest_of, dumped


class JsonlOut(OutFile):
    def _bytes(self, record: Record) -> bytes:
        return (dumped(record) + "\n").encode("utf-8", "backslashreplace")

    def _records(self) -> Iterator[Done]:
        start = 0
        with open(os.dup(self._fd), "rb") as file:
            file.seek(0)
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                yield self._done(line, number, start)
                start += len(line)

    def _done(self, line: bytes, number: int, start: int) -> Done:
        try:
            record = json.loads(line)
            error = record["error"]["type"] if "error" in record else ""
            key, digest = record["key"], digest_of(record["inputs"])
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            raise self._foreign(number, str(problem)) from problem
        return Done(key, digest, error, start, start + len(line))
