"""What files of rows hold: rows, and pieces that are none."""

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
    """A line that is not a row, and why. It takes an index, so that keys of others stay if it is
    mended."""

    why: str
    place: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of rows are, or the fields of JSON. key: that of the rows' keys; is_loose:
    those that are no argument of the program are left out."""

    key: str = KEY
    is_loose: bool = False


PLAIN = Columns()


class Raw(NamedTuple):
    """A record of a file as it was read. value: an object, if it can be a row; why: it is none, if
    that is known."""

    line: int
    value: Any = None
    why: str = ""


def place_of(file: str, unit: str, line: int) -> str:
    """`rows.jsonl:7`, or `rows.parquet: row 7`."""
    return f"{file}: {unit} {line}" if unit else f"{file}:{line}"
