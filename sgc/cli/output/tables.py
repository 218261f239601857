"""Text tables: the first columns are left-aligned, numbers right-aligned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

GAP = "  "


def table(rows: Sequence[Sequence[str]], n_left: int = 1) -> Iterator[str]:
    """The lines of a table. rows: equally long, headings first. n_left: left-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if number < n_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield GAP.join(cells).rstrip()


def count(number: float) -> str:
    """A count for people, with thousands separators."""
    return "any number" if math.isinf(number) else f"{math.ceil(number):,}"


def difference(before: float, after: float) -> str:
    """The difference with its sign; "" if there is none."""
    return f"{round(after - before):+,}" if after != before else ""


def dollars(money: float | None) -> str:
    if money is None:
        return ""
    return "any sum" if math.isinf(money) else f"${money:.4g}"
