"""A model made of hashes, which replaces only the forward pass; the rest of the engine is real.

The next token is a fast, pure function of the prefix's ids, the sampling parameters and the seed.
Its KV pool holds a number per page that depends on the token, its position and the whole prefix,
and logits derive from the numbers of *all* pages a row reads; so a wrong, stale or misplaced page
shows as different output. Used by tests and by `--fake` engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sgc.kernels.shared import ranges
from sgc.runtime.engine.ints import Bytes, Ints
from sgc.runtime.engine.model.forward import FlatBatch

Hashes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]

FAKE_POOL_TOKENS = 262144
FAKE_MAX_CONTEXT = 32768
_N_TABLE = 64
_FAKE_HIDDEN = 16
_SPREAD = 3.0
_RARE = 20.0  # makes a token the likeliest in the tables that have it
_NEVER = -30.0


class FakeModel:
    """A `Forward`. printable: tokens it may generate (all, if None); ends, breaks: tokens it
    sometimes generates, such as end of sequence, and newlines or full stops."""

    def __init__(
        self,
        n_pages: int,
        vocab_size: int,
        *,
        seed: int = 0,
        printable: Sequence[int] | None = None,
        ends: Sequence[int] = (),
        breaks: Sequence[int] = (),
    ) -> None:
        self.hidden_size = _FAKE_HIDDEN
        self._prefix: Hashes = np.zeros(n_pages, np.uint64)  # a sum over the prefix
        chosen = None if printable is None else tuple(printable)
        self._common, self._special = _tables(vocab_size, seed, chosen, tuple(ends), tuple(breaks))

    def run(self, batch: FlatBatch) -> Floats:
        self._write(batch)
        wanted = batch.logit_index
        if len(wanted) == 0:
            return np.empty((0, self._common.shape[1]), np.float32)
        hashes = self._context_hashes(batch, wanted)
        n = np.uint64(_N_TABLE)
        logits: Floats = self._common[hashes % n]
        logits += self._special[(hashes >> np.uint64(32)) % n]
        return logits

    def hidden(self, batch: FlatBatch) -> Floats:
        """Numbers that depend on the whole prefix, as logits do."""
        self._write(batch)
        wanted = batch.logit_index
        if len(wanted) == 0:
            return np.empty((0, self.hidden_size), np.float32)
        hashes = self._context_hashes(batch, wanted)[:, None]
        each = _scramble(np.add(hashes, np.arange(self.hidden_size, dtype=np.uint64)))
        found: Floats = (each >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - 1
        return found

    # The interface of `disk/pages.py`.
    token_bytes = 8

    def read(self, pages: Ints) -> Bytes:
        return self._prefix[pages].view(np.uint8)

    def write(self, pages: Ints, data: Bytes) -> None:
        self._prefix[pages] = data.view(np.uint64)[-len(pages) :]

    def _write(self, batch: FlatBatch) -> None:
        """Writes to each new page the sum over its prefix, continued from the page before it."""
        sums = np.cumsum(_mix(batch.token_ids, batch.positions), dtype=np.uint64)
        starts = batch.row_starts[:-1]
        before_row = np.concatenate([np.zeros(1, np.uint64), sums])[starts]
        first = np.diff(batch.page_starts) - np.diff(batch.row_starts)
        # The page before the row's first new one; rows that start a sequence have none.
        previous = batch.pages[np.maximum(batch.page_starts[:-1] + first - 1, 0)]
        base = np.where(first > 0, self._prefix[previous], np.uint64(0))
        lengths = np.diff(batch.row_starts)
        self._prefix[batch.slots] = sums + np.repeat(base - before_row, lengths)
        for row in np.flatnonzero(np.isin(previous, batch.slots) & (first > 0)):
            start, end = batch.row_starts[row], batch.row_starts[row + 1]
            on_from = self._prefix[previous[row : row + 1]] - before_row[row : row + 1]
            self._prefix[batch.slots[start:end]] = sums[start:end] + on_from

    def _context_hashes(self, batch: FlatBatch, wanted: Ints) -> Hashes:
        """One hash per wanted token, of all pages it attends to."""
        rows = np.searchsorted(batch.row_starts, wanted, side="right") - 1
        starts = batch.page_starts[rows]
        # All pages of a row without those of the new tokens after the wanted one.
        n_read = batch.page_starts[rows + 1] - starts - (batch.row_starts[rows + 1] - wanted) + 1
        read = ranges(starts, n_read)
        numbers = _scramble(self._prefix[batch.pages[read]])
        ends = np.cumsum(n_read)
        sums: Hashes = np.add.reduceat(numbers, ends - n_read)
        return _scramble(sums)


@lru_cache(maxsize=4)
def _tables(
    vocab_size: int,
    seed: int,
    printable: tuple[int, ...] | None,
    ends: tuple[int, ...],
    breaks: tuple[int, ...],
) -> tuple[Floats, Floats]:
    """[_N_TABLE, vocab] each, which models share: logits are a row of the first and one of the
    second."""
    rng = np.random.default_rng(seed)
    shape = (_N_TABLE, vocab_size)
    common: Floats = (_SPREAD * rng.standard_normal(shape, np.float32)).astype(np.float32)
    special: Floats = rng.standard_normal(shape, np.float32)
    if printable is not None:
        allowed = np.zeros(vocab_size, np.bool_)
        allowed[list(printable)] = True
        common[:, ~allowed] = _NEVER
    for tokens, rows in ((ends, range(0, 2)), (breaks, range(2, 10))):
        for i, row in enumerate(rows):
            if tokens:
                special[row, tokens[i % len(tokens)]] = _RARE - _NEVER
    common.flags.writeable = special.flags.writeable = False
    return common, special


def _mix(tokens: Ints, positions: Ints) -> Hashes:
    both = tokens.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return _scramble(both + positions.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


def _scramble(z: Hashes) -> Hashes:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
