"""Cuts the attention of a ragged batch into parts that each are one call of a dense kernel.

A token's keys are covered by one to three parts: the prefix that its row shares with others,
what else comes before the row's new tokens, and the new tokens themselves. On the host, in
numpy, once a step and window; called by `torch_cpu.py`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch

from sgc.kernels.shared import Ints, SharedPrefix, shared_prefixes

MAX_GROUP_PAGES = 32768  # of context, padding included, gathered at once


@dataclass(frozen=True, slots=True)
class Batch:
    """A `Ragged` on the host."""

    row_starts: Ints
    pages: Ints
    page_starts: Ints

    @property
    def n_new(self) -> Ints:
        return np.diff(self.row_starts)

    @property
    def n_context(self) -> Ints:
        return np.diff(self.page_starts)


@dataclass(frozen=True, slots=True)
class Part:
    """n_rows x n_queries queries against n_rows x n_keys keys.

    tokens: [n_rows * n_queries] of the batch's new tokens, a slice where they are consecutive.
    pages: [n_rows * n_keys]. sees: [n_rows, 1, n_queries, n_keys] of bool; None if all is
    seen, or, with is_causal, of a row's keys the first i + 1 by query i. is_first: none of the
    tokens is in an earlier part; otherwise all are.
    """

    tokens: slice | torch.Tensor
    n_rows: int
    n_queries: int
    pages: torch.Tensor
    sees: torch.Tensor | None = None
    is_causal: bool = False
    is_first: bool = True

    def is_whole(self, n_tokens: int) -> bool:
        """Whether it has all of so many tokens, in order."""
        return isinstance(self.tokens, slice) and self.tokens == slice(0, n_tokens)


def full_parts(batch: Batch, min_pages: int, min_saved: int) -> list[Part]:
    """For layers in which a token sees all tokens before it."""
    n_new = batch.n_new
    n_before = batch.n_context - n_new
    start = np.zeros(len(n_new), np.int64)  # of each row's own pages
    parts: list[Part] = []
    for prefix in shared_prefixes(
        batch.pages, batch.page_starts, n_before, min_pages=min_pages, min_saved=min_saved
    ):
        start[prefix.rows] = prefix.n_pages
        parts.append(_shared(batch, prefix))
    is_single = n_new == 1
    parts += _singles(batch, np.flatnonzero(is_single & (start > 0)), start, is_first=False)
    parts += _singles(batch, np.flatnonzero(is_single & (start == 0)), start)
    rows = np.flatnonzero(~is_single).tolist()
    parts += [_before(batch, row, int(start[row])) for row in rows if start[row] < n_before[row]]
    alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for row in rows:
        alike[int(n_new[row]), bool(n_before[row] == 0)].append(row)
    return parts + [_new(batch, rows, n, is_first) for (n, is_first), rows in alike.items()]


def window_parts(batch: Batch, window: int) -> list[Part]:
    """For layers in which a token sees itself and the window - 1 before it."""
    n_new, n_context = batch.n_new, batch.n_context
    start = np.maximum(0, n_context - n_new - window + 1)
    parts = _singles(batch, np.flatnonzero(n_new == 1), start)
    return parts + [
        _banded(batch, row, int(start[row]), window) for row in np.flatnonzero(n_new > 1).tolist()
    ]


def _shared(batch: Batch, prefix: SharedPrefix) -> Part:
    tokens = _ranges(batch.row_starts[prefix.rows], batch.n_new[prefix.rows])
    at = batch.page_starts[prefix.rows[0]]
    return Part(
        _slice_or_index(tokens), 1, len(tokens), _tensor(batch.pages[at : at + prefix.n_pages])
    )


def _before(batch: Batch, row: int, start: int) -> Part:
    """What is not shared of what comes before the new tokens."""
    first, last = batch.row_starts[row : row + 2].tolist()
    at, end = batch.page_starts[row : row + 2].tolist()
    pages = batch.pages[at + start : end - (last - first)]
    return Part(slice(first, last), 1, last - first, _tensor(pages), is_first=start == 0)


def _new(batch: Batch, rows: list[int], n: int, is_first: bool) -> Part:
    """The new tokens of rows with equally many of them, among themselves."""
    lengths = np.full(len(rows), n)
    tokens = _ranges(batch.row_starts[rows], lengths)
    pages = batch.pages[_ranges(batch.page_starts[1:][rows] - n, lengths)]
    return Part(
        _slice_or_index(tokens), len(rows), n, _tensor(pages), is_causal=True, is_first=is_first
    )


def _banded(batch: Batch, row: int, start: int, window: int) -> Part:
    first, last = batch.row_starts[row : row + 2].tolist()
    n_context = int(batch.n_context[row])
    queries = np.arange(n_context - (last - first), n_context)[:, None]
    keys = np.arange(start, n_context)
    sees = (keys <= queries) & (keys > queries - window)
    pages = batch.pages[batch.page_starts[row] + start : batch.page_starts[row + 1]]
    return Part(
        slice(first, last), 1, last - first, _tensor(pages), torch.from_numpy(sees)[None, None]
    )


def _singles(batch: Batch, rows: Ints, start: Ints, is_first: bool = True) -> list[Part]:
    """Rows with one new token, in groups of similar length, each padded to its longest."""
    lengths = (batch.n_context - start)[rows]
    if not len(rows):
        return []
    if _fits(len(rows), int(lengths.max()), int(lengths.min())):
        return [_group(batch, rows, start[rows], lengths, is_first)]
    order = np.argsort(-lengths, kind="stable")
    rows, lengths = rows[order], lengths[order]
    ordered, parts, at = lengths.tolist(), [], 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and _fits(end + 1 - at, ordered[at], ordered[end]):
            end += 1
        group = rows[at:end]
        parts.append(_group(batch, group, start[group], lengths[at:end], is_first))
        at = end
    return parts


def _fits(n_rows: int, longest: int, shortest: int) -> bool:
    return n_rows == 1 or (2 * shortest >= longest and n_rows * longest <= MAX_GROUP_PAGES)


def _group(batch: Batch, rows: Ints, start: Ints, lengths: Ints, is_first: bool) -> Part:
    within = np.arange(lengths.max())
    is_own = within < lengths[:, None]
    # Padding points at the row's own first page: what it holds is masked, but must be finite.
    at = (batch.page_starts[rows] + start)[:, None] + np.where(is_own, within, 0)
    sees = None if is_own.all() else torch.from_numpy(is_own)[:, None, None]
    tokens = _slice_or_index(batch.row_starts[rows])
    return Part(tokens, len(rows), 1, _tensor(batch.pages[at].ravel()), sees, is_first=is_first)


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """The integers start … start + length - 1 of each, one after the other."""
    ends = lengths.cumsum()
    ranges: Ints = np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)
    return ranges


def _slice_or_index(tokens: Ints) -> slice | torch.Tensor:
    first, n = int(tokens[0]), len(tokens)
    if tokens[-1] - first == n - 1 and bool((np.diff(tokens) == 1).all()):
        return slice(first, first + n)
    return _tensor(tokens)


def _tensor(values: Ints) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))
