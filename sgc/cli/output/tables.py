"""Tables of text: the first columns to the left, numbers to the right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

GAP = "  "


def table(rows: Sequence[Sequence[str]], n_left: int = 1) -> Iterator[str]:
    """Rows of equally many cells, the first one their heads. n_left: columns that hold words."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if number < n_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield GAP.join(cells).rstrip()


def count(number: float) -> str:
    """A count as people write it."""
    return "any number" if math.isinf(number) else f"{math.ceil(number):,}"


def difference(before: float, after: float) -> str:
    """What came to be more or less; nothing where nothing did."""
    return f"{round(after - before):+,}" if after != before else ""


def dollars(money: float | None) -> str:
    if money is None:
        return ""
    return "any sum" if math.isinf(money) else f"${money:.4g}"
