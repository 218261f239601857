"""Rows of CSV: the first line names the columns; cells are read as the parameters' types."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sgc.errors import UsageError, counted
from sgc.ir.types import Kind, Type
from sgc.runs.rows.records import KEY, MAX_ROW_BYTES, Columns, Raw

UNIT = ""
_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_TEXTS = (None, Kind.TEXT, Kind.CHOICE)
_SEPARATORS = (";", "\t", "|")


def read(path: Path, types: Mapping[str, Type], meant: Columns) -> Iterator[Raw]:
    """types: of the parameters; other columns are texts. An empty cell of a parameter that is no
    text is no argument.
    """
    csv.field_size_limit(MAX_ROW_BYTES)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        lines = csv.reader(file, strict=True)
        columns: list[str] | None = None
        while True:
            line = lines.line_num + 1
            try:
                cells = next(lines)
            except StopIteration:
                return
            except csv.Error as error:
                if columns is None:
                    raise UsageError(f"{path}:{line}: the first line is no CSV: {error}") from error
                yield Raw(line, why=f"this is no CSV: {error}")
                continue
            if columns is None:
                columns = _columns(path, cells, meant)
            elif cells:
                yield _row(line, columns, cells, types)


def _columns(path: Path, cells: list[str], meant: Columns) -> list[str]:
    named = [name for name in cells if name or not meant.is_loose]
    twice = {name for name in named if named.count(name) > 1}
    if not named or twice or "" in named:
        found = f"{sorted(twice)[0]!r} twice" if twice else "a column without a name"
        raise UsageError(
            f"{path}:1: expected the names of the columns, found {found}",
            hint=f"the first line of a CSV file names the program's parameters, and {KEY}"
            + ("" if twice else "; --ignore-columns leaves others out"),
        )
    if len(cells) == 1 and (other := [each for each in _SEPARATORS if each in cells[0]]):
        raise UsageError(
            f"{path}:1: expected columns with commas between them, found {cells[0]!r}",
            hint=f"save it with commas; here {other[0]!r} seems to stand between them",
        )
    return cells


def _row(line: int, columns: list[str], cells: list[str], types: Mapping[str, Type]) -> Raw:
    if len(cells) != len(columns):
        return Raw(line, why=f"expected {counted(len(columns), 'cell')}, found {len(cells)}")
    found: dict[str, Any] = {}
    for name, cell in zip(columns, cells, strict=True):
        if not cell.isascii():
            try:
                cell.encode("utf-8")
            except UnicodeEncodeError:
                return Raw(line, why=f"column {name}: expected UTF-8; save the file so")
        type_ = types.get(name)
        kind = None if type_ is None else type_.kind
        if kind in _TEXTS:
            if cell or name != KEY:
                found[name] = cell
        elif cell:
            try:
                found[name] = _value(cell, kind)
            except (ValueError, RecursionError):
                shown = cell if len(cell) < 80 else cell[:80] + "…"
                return Raw(line, why=f"column {name}: expected {type_}, found {shown!r}")
    return Raw(line, found)


def _value(cell: str, kind: Kind | None) -> Any:
    if kind is Kind.BOOL:
        try:
            return _BOOLS[cell.strip().lower()]
        except KeyError as error:
            raise ValueError(cell) from error
    if kind is Kind.INT and "_" not in cell:
        return int(cell)
    if kind is Kind.FLOAT and "_" not in cell:
        return float(cell)
    try:
        return json.loads(cell)
    except ValueError:
        if kind is Kind.JSON and not cell.startswith(("[", "{", '"')):
            return cell
        raise
