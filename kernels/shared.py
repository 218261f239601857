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
            # The first row may share less with all than others share among themselves.
            some = {0, len(left) // 2, len(left) - 1}
            prefix = max(
                (_best_with(int(i), left, pages, page_starts, n_before) for i in some),
                key=lambda prefix: (len(prefix.rows) - 1) * prefix.n_pages,
            )
            is_worth_it = (len(prefix.rows) - 1) * prefix.n_pages >= min_saved
            if prefix.n_pages >= min_pages and is_worth_it:
                found.append(prefix)
                left = np.setdiff1d(left, prefix.rows, assume_unique=True)
            else:  # others may share more than the first row
                left = left[1:]
    return found


def _best_with(
    which: int, rows: Ints, pages: Ints, page_starts: Ints, n_before: Ints
) -> SharedPrefix:
    """The prefix of row `which` whose sharing with other rows saves most reads."""
    n = int(n_before[rows[which]])
    first = pages[page_starts[rows[which]] : page_starts[rows[which]] + n]
    at = page_starts[rows][:, None] + np.arange(n)
    same = pages[np.minimum(at, len(pages) - 1)] == first
    common = np.where(same.all(1), n, same.argmin(1))
    common = np.minimum(common, n_before[rows])
    order = np.argsort(-common, kind="stable")
    saved = np.arange(len(rows)) * common[order]
    n_pages = int(common[order[saved.argmax()]])
    return SharedPrefix(rows[common >= n_pages], n_pages)
