"""The contents of files of rows: rows, and pieces that are not rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_ROW_BYTES = 16 << 20
KEY = "custom_id"


@dataclass(frozen=True, slots=True)
class InputRow:
    """key: the row's `custom_id`, else its index; arguments: the program's; line: from 1.

    file: that it is from; unit: what `line` counts, if not lines; index: among all rows, from 0.
    """

    key: str
    arguments: dict[str, Any]
    line: int
    file: str = ""
    unit: str = ""
    index: int = 0

    @property
    def place(self) -> str:
        return place_of(self.file, self.unit, self.line)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is not a row, and why. It has an index, so that mending it does not change the
    keys of other rows."""

    why: str
    place: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """The meaning of the columns of rows, or of JSON's fields. key: the column of the rows' keys;
    is_loose: columns that are not arguments of the program are left out."""

    key: str = KEY
    is_loose: bool = False


PLAIN = Columns()


class Raw(NamedTuple):
    """A record of a file as it was read. value: an object, if it can be a row; why: the reason why
    it is not a row, if known."""

    line: int
    value: Any = None
    why: str = ""


def place_of(file: str, unit: str, line: int) -> str:
    """`rows.jsonl:7`, or `rows.parquet: row 7`."""
    return f"{file}: {unit} {line}" if unit else f"{file}:{line}"
