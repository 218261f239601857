"""The source of rows: files of one format, or stdin."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sgc.errors import UsageError, closest, closest_file
from sgc.ir.types import Type
from sgc.runs.rows import csv_rows, json_array, jsonl, parquet
from sgc.runs.rows.records import KEY, PLAIN, BadRow, Columns, InputRow, Raw, place_of
from sgc.runs.rows.spool import Spool, spooled

FORMATS = ("jsonl", "csv", "json", "parquet")
_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".json": "json",
              ".parquet": "parquet", ".pq": "parquet"}  # fmt: skip
_UNITS = {"jsonl": jsonl.UNIT, "csv": csv_rows.UNIT, "json": json_array.UNIT,
          "parquet": parquet.UNIT}  # fmt: skip
STDIN = "-"
_NO_TYPES: Mapping[str, Type] = {}


@dataclass(frozen=True, slots=True)
class Part:
    """One file. name: what errors call it, which is not its path if it was spooled."""

    path: Path
    form: str
    name: str

    def read(self, types: Mapping[str, Type], columns: Columns) -> Iterator[Raw]:
        readers: dict[str, Callable[[], Iterator[Raw]]] = {
            "jsonl": lambda: jsonl.read(self.path),
            "csv": lambda: csv_rows.read(self.path, types, columns),
            "json": lambda: json_array.read(self.path),
            "parquet": lambda: parquet.read(self.path),
        }
        try:
            yield from readers[self.form]()
        except OSError as error:
            is_gone = isinstance(error, FileNotFoundError)
            meant = closest_file(self.path) if is_gone else ""
            raise UsageError(f"{self.name}: {error.strerror}{meant}") from error


@dataclass(frozen=True, slots=True)
class RowSource:
    """The rows of files, which may be read any number of times. name: as the user gave it."""

    name: str
    parts: tuple[Part, ...]
    columns: Columns = PLAIN

    def read(self, types: Mapping[str, Type] = _NO_TYPES) -> Iterator[InputRow | BadRow]:
        index = 0
        for part in self.parts:
            unit = _UNITS[part.form]
            for raw in part.read(types, self.columns):
                yield _row(raw, part.name, unit, index, self.columns, types)
                index += 1

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(part.path for part in self.parts)


def open_source(
    name: str,
    form: str | None = None,
    spool: Spool | None = None,
    columns: Columns = PLAIN,
) -> RowSource:
    """The rows that `--rows NAME` names: a file, a pattern of files, or `-`.

    spool: where input that can be read only once is kept; None: in a temporary file. Raises
    UsageError if there is nothing.
    """
    if name == STDIN:
        kept = spooled(lambda: sys.stdin.buffer, spool)
        return RowSource("stdin", (Part(kept, form or "jsonl", "stdin"),), columns)
    paths = _paths(name)
    parts = []
    for number, path in enumerate(paths):
        kind = form or _BY_SUFFIX.get(path.suffix.lower(), "jsonl")
        is_once = path.exists() and not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
        if is_once:
            place = None if spool is None else spool.of_part(number)
            kept = spooled(lambda path=path: path.open("rb"), place)  # type: ignore[misc]
            parts.append(Part(kept, kind, str(path)))
        else:
            parts.append(Part(path, kind, str(path)))
    return RowSource(name, tuple(parts), columns)


def _paths(name: str) -> list[Path]:
    if os.path.exists(name) or not glob.has_magic(name):
        return [Path(name)]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise UsageError(f"--rows {name}: no file is called so")
    return [Path(each) for each in found]


def _row(
    raw: Raw, file: str, unit: str, index: int, columns: Columns, types: Mapping[str, Type]
) -> InputRow | BadRow:
    why, found = raw.why, raw.value
    if not why and not isinstance(found, dict):
        why = f"expected a JSON object, found {type(found).__name__}"
    if why:
        return BadRow(why, place_of(file, unit, raw.line), index)
    name = columns.key
    if name != KEY and found.get(name, "") == "":
        meant = "" if name in found else closest(name, list(found))
        why = f"its {name!r}, which --key takes as its key, is " + (
            "empty" if name in found else f"not there{meant}"
        )
        return BadRow(why, place_of(file, unit, raw.line), index)
    key = found[name] if name != KEY and name in types else found.pop(name, index)
    if not isinstance(key, str | int) or isinstance(key, bool):
        why = f"{name} must be a text or a number, found {key!r}"
        return BadRow(why, place_of(file, unit, raw.line), index)
    if columns.is_loose:
        found = {each: value for each, value in found.items() if each in types}
    return InputRow(str(key), found, raw.line, file, unit, index)
