"""Splits the attention of a ragged batch into parts, each one call of a dense kernel.

A token's keys are covered by one to three parts: the prefix that its row shares with others, the
rest of the context before the row's new tokens, and the new tokens themselves. Adjacent rows with
few new tokens, such as the branches of a tree of choices, are joined in one part: all their tokens
against all their keys, under a mask (tree attention, as in SpecInfer). It runs on the host, in
numpy, once per step and window; `torch_attention.py` calls it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sgc.kernels.shared import Ints, SharedPrefix, ranges, shared_prefixes

MAX_GROUP_PAGES = 32768  # of context, padding included, in one group

# Short rows are joined if that saves time. Model S, 2 cores: a call takes 35 us, a masked pair of
# query and key 4 ns; a pair takes longer in larger models, hence fewer pairs than 35 us allow.
MAX_SHORT_TOKENS = 32  # of a row
MAX_SHORT_PAGES = 128  # of its context, without a shared prefix and a window
MAX_JOINED_TOKENS = 512  # of all joined rows: pairs grow with the square
PAIRS_OF_A_CALL = 4096
MAX_JOINED_PAIRS = 1 << 19  # the mask's size


@dataclass(frozen=True, slots=True)
class Batch:
    """A `Ragged` as numpy arrays."""

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
    """Attention of n_rows x n_queries queries to n_rows x n_keys keys.

    tokens: [n_rows * n_queries] of the batch's new tokens, a slice where they are consecutive.
    pages: [n_rows * n_keys]. sees: bool [n_rows, 1, n_queries, n_keys]; None if every query sees
    all keys, or, with is_causal, query i the first i + 1. is_first: none of the tokens is in an
    earlier part; otherwise all are.
    """

    tokens: slice | Tensor
    n_rows: int
    n_queries: int
    pages: Tensor
    sees: Tensor | None = None
    is_causal: bool = False
    is_first: bool = True

    def to(self, device: torch.device) -> Part:
        """The part with its tensors on a device."""
        if device == self.pages.device:
            return self
        tokens = self.tokens if isinstance(self.tokens, slice) else self.tokens.to(device)
        sees = None if self.sees is None else self.sees.to(device)
        return replace(self, tokens=tokens, pages=self.pages.to(device), sees=sees)

    def is_whole(self, n_tokens: int) -> bool:
        """Whether the part has all `n_tokens` tokens, in order."""
        return isinstance(self.tokens, slice) and self.tokens == slice(0, n_tokens)


def full_parts(batch: Batch, min_pages: int, min_saved: int) -> list[Part]:
    """The parts for layers in which a token sees all tokens before it."""
    n_new = batch.n_new
    n_before = batch.n_context - n_new
    start = np.zeros(len(n_new), np.int64)  # where each row's own pages start
    parts: list[Part] = []
    for prefix in shared_prefixes(
        batch.pages, batch.page_starts, n_before, min_pages=min_pages, min_saved=min_saved
    ):
        start[prefix.rows] = prefix.n_pages
        parts.append(_shared(batch, prefix))
    is_single = n_new == 1
    parts += _singles(batch, np.flatnonzero(is_single & (start > 0)), start, is_first=False)
    parts += _singles(batch, np.flatnonzero(is_single & (start == 0)), start)
    joined, rows = _joined(batch, np.flatnonzero(~is_single), start)
    parts += joined
    parts += [_before(batch, row, int(start[row])) for row in rows if start[row] < n_before[row]]
    alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for row in rows:
        alike[int(n_new[row]), bool(n_before[row] == 0)].append(row)
    return parts + [_new(batch, rows, n, is_first) for (n, is_first), rows in alike.items()]


def window_parts(batch: Batch, window: int) -> list[Part]:
    """The parts for layers in which a token sees itself and the window - 1 tokens before it."""
    n_new, n_context = batch.n_new, batch.n_context
    start = np.maximum(0, n_context - n_new - window + 1)
    parts = _singles(batch, np.flatnonzero(n_new == 1), start)
    joined, rows = _joined(batch, np.flatnonzero(n_new > 1), start, window)
    return parts + joined + [_banded(batch, row, int(start[row]), window) for row in rows]


def _shared(batch: Batch, prefix: SharedPrefix) -> Part:
    tokens = ranges(batch.row_starts[prefix.rows], batch.n_new[prefix.rows])
    at = batch.page_starts[prefix.rows[0]]
    return Part(
        _slice_or_index(tokens), 1, len(tokens), tensor_of(batch.pages[at : at + prefix.n_pages])
    )


def _before(batch: Batch, row: int, start: int) -> Part:
    """The part for the context before the new tokens, without a shared prefix."""
    first, last = batch.row_starts[row : row + 2].tolist()
    at, end = batch.page_starts[row : row + 2].tolist()
    pages = batch.pages[at + start : end - (last - first)]
    return Part(slice(first, last), 1, last - first, tensor_of(pages), is_first=start == 0)


def _new(batch: Batch, rows: list[int], n: int, is_first: bool) -> Part:
    """The part for rows with n new tokens each, which attend to themselves causally."""
    lengths = np.full(len(rows), n)
    tokens = ranges(batch.row_starts[rows], lengths)
    pages = batch.pages[ranges(batch.page_starts[1:][rows] - n, lengths)]
    return Part(
        _slice_or_index(tokens), len(rows), n, tensor_of(pages), is_causal=True, is_first=is_first
    )


def _banded(batch: Batch, row: int, start: int, window: int) -> Part:
    first, last = batch.row_starts[row : row + 2].tolist()
    n_context = int(batch.n_context[row])
    queries = np.arange(n_context - (last - first), n_context)[:, None]
    keys = np.arange(start, n_context)
    sees = (keys <= queries) & (keys > queries - window)
    pages = batch.pages[batch.page_starts[row] + start : batch.page_starts[row + 1]]
    return Part(
        slice(first, last), 1, last - first, tensor_of(pages), torch.from_numpy(sees)[None, None]
    )


def _joined(
    batch: Batch, rows: Ints, start: Ints, window: int | None = None
) -> tuple[list[Part], list[int]]:
    """Parts of short rows that are cheaper together, and the rows in none of them. start: where
    each row's window starts, or without a window, where its shared prefix ends."""
    if not len(rows):  # the usual case
        return [], []
    n_new, n_own = batch.n_new[rows], (batch.n_context - start)[rows]
    is_short = (n_new <= MAX_SHORT_TOKENS) & (n_own <= MAX_SHORT_PAGES + (window or 0))
    is_first = (start[rows] == 0) | (window is not None)
    parts: list[Part] = []
    left = [rows[~is_short]]
    for is_of_run in (is_short & is_first, is_short & ~is_first):
        for run in _runs(rows[is_of_run], n_new[is_of_run]):
            part = _join(batch, run, start, window)
            if part is None:
                left.append(run)
            else:
                parts.append(part)
    return parts, np.sort(np.concatenate(left)).tolist()


def _runs(rows: Ints, n_new: Ints) -> list[Ints]:
    """Splits rows into runs with a bounded number of tokens; rows of one tree are adjacent."""
    cuts = np.flatnonzero(np.diff(n_new.cumsum() // MAX_JOINED_TOKENS)) + 1
    return [run for run in np.split(rows, cuts) if len(run)]


def _join(batch: Batch, rows: Ints, start: Ints, window: int | None) -> Part | None:
    """The rows in one part; None if that saves no call, or masked pairs cost more."""
    n_new, n_own = batch.n_new[rows], (batch.n_context - start)[rows]
    n_saved = len(np.unique(n_new)) + np.count_nonzero(n_own > n_new) - 1
    if n_saved == 0:
        return None
    pages = batch.pages[ranges(batch.page_starts[rows] + start[rows], n_own)]
    keys, key_of_page = np.unique(pages, return_inverse=True)
    n_pairs = n_new.sum() * len(keys)
    if n_pairs - n_new @ n_own > n_saved * PAIRS_OF_A_CALL or n_pairs > MAX_JOINED_PAIRS:
        return None
    ends = n_own.cumsum()
    last = ranges(ends - n_new, n_new)  # each token's index among the pages
    first = np.repeat(ends - n_own, n_new)
    if window is not None:
        first = np.maximum(first, last - window + 1)
    n_seen = last - first + 1
    sees = np.zeros((len(last), len(keys)), bool)
    sees[np.repeat(np.arange(len(last)), n_seen), key_of_page[ranges(first, n_seen)]] = True
    return Part(
        _slice_or_index(ranges(batch.row_starts[rows], n_new)),
        1,
        len(last),
        tensor_of(keys),
        torch.from_numpy(sees)[None, None],
        is_first=window is not None or int(start[rows[0]]) == 0,
    )


def _singles(batch: Batch, rows: Ints, start: Ints, is_first: bool = True) -> list[Part]:
    """Parts of rows with one new token, in groups of similar length, padded to the longest."""
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
    # Padding points at the row's own first page: its values are masked, but must be finite.
    at = (batch.page_starts[rows] + start)[:, None] + np.where(is_own, within, 0)
    sees = None if is_own.all() else torch.from_numpy(is_own)[:, None, None]
    tokens = _slice_or_index(batch.row_starts[rows])
    return Part(tokens, len(rows), 1, tensor_of(batch.pages[at].ravel()), sees, is_first=is_first)


def _slice_or_index(tokens: Ints) -> slice | Tensor:
    first, n = int(tokens[0]), len(tokens)
    if tokens[-1] - first == n - 1 and bool((np.diff(tokens) == 1).all()):
        return slice(first, first + n)
    return tensor_of(tokens)


def tensor_of(values: Ints) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))
