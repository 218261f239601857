"""Cuts a step's attention into work items, on the host, in numpy, once per step.

An item is some tokens and a range of keys. Each row's new tokens are cut into tiles, and a shared
prefix makes tiles of the tokens of all its rows (`kernels/shared.py`); a tile's keys are split so
that the whole device has work, evenly distributed. If several items have one token, their outputs
for it are merged afterwards. Pure functions, no device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgc.kernels.shared import SharedPrefix, ranges, shared_prefixes
from sgc.kernels.triton.paged.blocks import Shape, few_rows, many_rows

Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]

ITEM_WIDTH = 6
WHOLE = -1  # the ordinal of an item that makes the whole output of its tokens

# A split has at least so many keys, in multiples of `KEY_STEP`.
MIN_SPLIT = 256
KEY_STEP = 64
# If there are fewer tiles, keys are split into so many programs per multiprocessor, which run at
# once.
FEW_PER_PROCESSOR = 3
MANY_PER_PROCESSOR = 1


@dataclass(frozen=True, slots=True)
class Sharing:
    """The least numbers of shared pages, and of saved page reads, for rows to attend together to a
    shared prefix: about where that is worth another launch and a merge in each layer."""

    min_pages: int = 256
    min_saved: int = 8192


SHARING = Sharing()


@dataclass(frozen=True, slots=True)
class Items:
    """The items of one step, for one window.

    few, many: [n, 6], items of tiles with few and many rows, longest first; each is the index in
    `tokens` of its first token, how many tokens, where its row's pages begin, its first key, the
    end of its keys, and which of its tokens' parts it makes (`WHOLE`: the whole output). tokens:
    the tokens of tiles, one after the other. contexts: [n_tokens], how many keys each may see.
    part_starts: [n_tokens + 1], where each token's parts begin. merged: tokens that have parts.
    """

    few: Ints32
    many: Ints32
    tokens: Ints32
    contexts: Ints32
    part_starts: Ints32
    merged: Ints32

    @property
    def n_parts(self) -> int:
        return int(self.part_starts[-1])

    def arrays(self) -> tuple[Ints32, ...]:
        """As they are named above."""
        return self.few, self.many, self.tokens, self.contexts, self.part_starts, self.merged


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Each: [n_tiles]. first: where its tokens are listed. lo, hi: its keys. ordinal: of its first
    part. is_many: whether it has room for many rows."""

    first: Ints
    n_tokens: Ints
    page_start: Ints
    lo: Ints
    hi: Ints
    is_many: npt.NDArray[np.bool_]


def plan_items(
    row_starts: Ints,
    page_starts: Ints,
    pages: Ints,
    shape: Shape,
    *,
    window: int | None,
    shares: bool,
    sharing: Sharing = SHARING,
) -> Items:
    """The items of a ragged batch (`interface.Ragged`, as arrays).

    A row with one new token and no pages is an empty row: its output is zeros. shares: whether rows
    of few tokens attend together to the pages that they begin with; windowed layers never do.
    """
    n_new, n_pages = np.diff(row_starts), np.diff(page_starts)
    n_before = n_pages - n_new
    n_tokens = int(row_starts[-1])
    trunks: list[SharedPrefix] = []
    if shares and window is None:
        # Sharing saves no reads for a row whose own tokens fill tiles.
        has_room = 2 * n_new * shape.group <= many_rows(shape)
        trunks = _trunks(pages, page_starts, n_before * has_room, sharing)
    shared = np.zeros_like(n_new)
    for trunk in trunks:
        shared[trunk.rows] = trunk.n_pages
    contexts = np.arange(n_tokens) + np.repeat(n_before - row_starts[:-1] + 1, n_new)

    tiles, tile_rows = _own_tiles(row_starts, page_starts, n_new, n_before, shared, window, shape)
    tokens = [np.arange(n_tokens)]
    n_own = len(tile_rows)
    if trunks:
        listed = [ranges(row_starts[t.rows], n_new[t.rows]) for t in trunks]
        tiles = _joined(tiles, _trunk_tiles(trunks, listed, page_starts, n_tokens, shape))
        tokens += listed

    n_keys = tiles.hi - tiles.lo
    n_splits, per_split = _splits(n_keys, tiles.is_many, shape)
    counts = np.repeat(n_splits[:n_own], tiles.n_tokens[:n_own])
    before = np.zeros_like(n_splits)  # the trunk's parts, which come before a tile's own
    if trunks:
        trunk_parts = np.repeat(n_splits[n_own:], tiles.n_tokens[n_own:])
        under = np.concatenate(listed)
        before_token = np.zeros_like(counts)
        before_token[under] = trunk_parts
        counts = counts + before_token
        before[:n_own] = before_token[row_starts[tile_rows]]
    is_merged = counts > 1
    part_starts = np.zeros(n_tokens + 1, np.int32)
    np.cumsum(counts * is_merged, out=part_starts[1:])
    is_whole = n_splits + before == 1
    is_whole[n_own:] = False
    few, many = _items(tiles, n_splits, per_split, before, is_whole)
    return Items(
        few,
        many,
        np.concatenate(tokens).astype(np.int32),
        contexts.astype(np.int32),
        part_starts,
        np.flatnonzero(is_merged).astype(np.int32),
    )


def _trunks(pages: Ints, page_starts: Ints, n_before: Ints, sharing: Sharing) -> list[SharedPrefix]:
    """The shared prefixes; quick for batches that share nothing, as most do."""
    long = n_before >= sharing.min_pages
    if long.sum() < 2:
        return []
    last = np.sort(pages[page_starts[:-1][long] + sharing.min_pages - 1])
    if not (last[1:] == last[:-1]).any():
        return []
    return shared_prefixes(
        pages, page_starts, n_before, min_pages=sharing.min_pages, min_saved=sharing.min_saved
    )


def _own_tiles(
    row_starts: Ints,
    page_starts: Ints,
    n_new: Ints,
    n_before: Ints,
    shared: Ints,
    window: int | None,
    shape: Shape,
) -> tuple[_Tiles, Ints]:
    """Tiles of each row's new tokens and the row's own keys that they see; and each tile's row."""
    n_few, n_many = few_rows(shape) // shape.group, many_rows(shape) // shape.group
    is_many = n_new > n_few
    size = np.where(is_many, n_many, n_few)
    n_tiles = -(-n_new // size)
    if len(n_tiles) == n_tiles.sum():
        rows, done = np.arange(len(n_new)), np.zeros_like(n_new)
    else:
        rows = np.repeat(np.arange(len(n_new)), n_tiles)
        size, is_many = size[rows], is_many[rows]
        done = (np.arange(len(rows)) - np.repeat(n_tiles.cumsum() - n_tiles, n_tiles)) * size
    n_tokens = np.minimum(n_new[rows] - done, size)
    before = n_before[rows] + done
    lo = shared[rows] if window is None else np.maximum(before + 1 - window, 0)
    tiles = _Tiles(
        row_starts[rows] + done, n_tokens, page_starts[rows], lo, before + n_tokens, is_many
    )
    return tiles, rows


def _trunk_tiles(
    trunks: list[SharedPrefix], listed: list[Ints], page_starts: Ints, n_tokens: int, shape: Shape
) -> _Tiles:
    """All tokens of each trunk's rows against the trunk's keys. listed: each trunk's tokens, which
    are listed after the batch's own."""
    n_listed = np.array([len(tokens) for tokens in listed])
    is_many = n_listed > few_rows(shape) // shape.group
    size = np.where(is_many, many_rows(shape), few_rows(shape)) // shape.group
    n_tiles = -(-n_listed // size)
    which = np.repeat(np.arange(len(trunks)), n_tiles)
    done = (np.arange(len(which)) - np.repeat(n_tiles.cumsum() - n_tiles, n_tiles)) * size[which]
    starts = n_tokens + n_listed.cumsum() - n_listed
    return _Tiles(
        starts[which] + done,
        np.minimum(n_listed[which] - done, size[which]),
        page_starts[[int(trunk.rows[0]) for trunk in trunks]][which],
        np.zeros_like(which),
        np.array([trunk.n_pages for trunk in trunks])[which],
        is_many[which],
    )


def _joined(a: _Tiles, b: _Tiles) -> _Tiles:
    return _Tiles(
        np.concatenate([a.first, b.first]),
        np.concatenate([a.n_tokens, b.n_tokens]),
        np.concatenate([a.page_start, b.page_start]),
        np.concatenate([a.lo, b.lo]),
        np.concatenate([a.hi, b.hi]),
        np.concatenate([a.is_many, b.is_many]),
    )


def most_splits(is_many: bool, shape: Shape) -> int:
    """The most items of one kind into which keys are split, beyond one for each tile."""
    per_processor = MANY_PER_PROCESSOR if is_many else FEW_PER_PROCESSOR
    return max(1, per_processor * shape.n_processors // shape.n_kv_heads)


def _splits(n_keys: Ints, is_many: npt.NDArray[np.bool_], shape: Shape) -> tuple[Ints, Ints]:
    """The number of splits of each tile's keys, and the number of keys in a split.

    Of n tiles with k keys come at most n + k / `MIN_SPLIT` and n + `most_splits` items.
    """
    total, total_many = int(n_keys.sum()), int(n_keys @ is_many)
    longest_few = _longest(total - total_many, most_splits(False, shape))
    longest_many = _longest(total_many, most_splits(True, shape))
    longest = np.where(is_many, longest_many, longest_few)
    n_splits = np.maximum(-(-n_keys // longest), 1)
    per_split = -(-n_keys // (n_splits * KEY_STEP)) * KEY_STEP
    return np.maximum(-(-n_keys // np.maximum(per_split, 1)), 1), per_split


def _longest(n_keys: int, n_items: int) -> int:
    return max(MIN_SPLIT, -(-n_keys // n_items))


def _items(
    tiles: _Tiles,
    n_splits: Ints,
    per_split: Ints,
    before: Ints,
    is_whole: npt.NDArray[np.bool_],
) -> tuple[Ints32, Ints32]:
    """Items of tiles with few rows and with many, each longest first, so that no long item runs
    last."""
    of = np.repeat(np.arange(len(n_splits)), n_splits)
    split = np.arange(len(of)) - np.repeat(n_splits.cumsum() - n_splits, n_splits)
    items = np.empty((len(of), ITEM_WIDTH), np.int32)
    items[:, 0] = tiles.first[of]
    items[:, 1] = tiles.n_tokens[of]
    items[:, 2] = tiles.page_start[of]
    begin = tiles.lo[of] + split * per_split[of]
    items[:, 3] = begin
    items[:, 4] = end = np.minimum(begin + per_split[of], tiles.hi[of])
    items[:, 5] = np.where(is_whole[of], WHOLE, before[of] + split)
    order = np.argsort(begin - end, kind="stable")
    items = items[order]
    is_many = tiles.is_many[of[order]]
    if not is_many.any():
        return items, items[:0]
    return items[~is_many], items[is_many]
