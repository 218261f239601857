"""Finds rows of a ragged batch that begin with the same pages, so that their shared prefix is
attended to once for all of them (cascade attention, as in Hydragen and FlashInfer). It runs on the
host, in numpy, once per step.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """The integers start … start + length - 1 of each range, concatenated."""
    ends = lengths.cumsum()
    found: Ints = np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)
    return found


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """rows: [n], ascending, whose contexts all begin with the same n_pages pages."""

    rows: Ints
    n_pages: int

    @property
    def n_saved(self) -> int:
        """How many reads of a page it saves."""
        return (len(self.rows) - 1) * self.n_pages


def shared_prefixes(
    pages: Ints, page_starts: Ints, n_before: Ints, *, min_pages: int, min_saved: int
) -> list[SharedPrefix]:
    """Disjoint sets of rows that share at least `min_pages` pages, if that saves at least
    `min_saved` page reads.

    n_before: [n_rows], the pages before each row's new tokens; only these can be shared.
    """
    rows = np.flatnonzero(n_before >= min_pages)
    if (len(rows) - 1) * min_pages < 1:
        return []
    # Rows that share min_pages pages have the same page at index min_pages - 1.
    alike: dict[int, list[int]] = defaultdict(list)
    for row, page in zip(rows, pages[page_starts[rows] + min_pages - 1].tolist(), strict=True):
        alike[int(page)].append(int(row))
    found: list[SharedPrefix] = []
    for members in alike.values():
        left = np.array(members)
        while len(left) > 1:
            prefix = _best(left, pages, page_starts, n_before)
            if prefix.n_pages >= min_pages and prefix.n_saved >= min_saved:
                found.append(prefix)
                left = np.setdiff1d(left, prefix.rows, assume_unique=True)
            else:  # others may share more than the first row
                left = left[1:]
    return found


def _best(rows: Ints, pages: Ints, page_starts: Ints, n_before: Ints) -> SharedPrefix:
    """The prefix of some of the rows whose sharing saves most reads."""
    best = _best_with(0, rows, pages, page_starts, n_before)
    if len(best.rows) == len(rows) and best.n_saved >= (len(rows) - 2) * n_before[rows].max():
        return best  # fewer rows cannot save more
    # The first row may share less with all rows than other rows share among themselves.
    for i in {len(rows) // 2, len(rows) - 1}:
        other = _best_with(i, rows, pages, page_starts, n_before)
        best = max(best, other, key=lambda prefix: prefix.n_saved)
    return best


def _best_with(
    which: int, rows: Ints, pages: Ints, page_starts: Ints, n_before: Ints
) -> SharedPrefix:
    """The prefix of row `which` whose sharing with other rows saves most reads."""
    n = int(n_before[rows[which]])
    first = pages[page_starts[rows[which]] : page_starts[rows[which]] + n]
    common = np.array(
        [
            _n_common(first, pages[start : start + length])
            for start, length in zip(page_starts[rows], n_before[rows], strict=True)
        ]
    )
    order = np.argsort(-common, kind="stable")
    saved = np.arange(len(rows)) * common[order]
    n_pages = int(common[order[saved.argmax()]])
    return SharedPrefix(rows[common >= n_pages], n_pages)


def _n_common(a: Ints, b: Ints) -> int:
    """The length of the common prefix."""
    n = min(len(a), len(b))
    same = a[:n] == b[:n]
    return n if same.all() else int(same.argmin())
