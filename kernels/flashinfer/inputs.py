"""A batch as FlashInfer takes it: arrays of where rows start, with pages of one token.

A batch in which rows share their first pages becomes two batches: in one, the tokens of all rows
that share a trunk are one row, which attends to the trunk; in the other, each row attends to the
rest of its own pages. The outputs of both are merged (cascade inference).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.interface import Ragged
from sgc.kernels.shared import Ints, SharedPrefix, ranges, shared_prefixes

PAGE_SIZE = 1
# From this size on, a trunk is worth a second call and a merge in each layer.
MIN_SHARED_PAGES = 256
MIN_SAVED_READS = 4096


@dataclass(frozen=True, slots=True)
class Rows:
    """q_starts, page_starts: [n_rows + 1]; last_page_tokens: [n_rows], the tokens on a row's last
    page: 1, or 0 in a row without pages; pages: all rows'. int32, on the CPU.

    If is_causal, new tokens are the last of their row's context; else they attend to all of its
    pages.
    """

    q_starts: Tensor
    page_starts: Tensor
    pages: Tensor
    last_page_tokens: Tensor
    is_causal: bool

    @classmethod
    def of(cls, n_new: Ints, n_pages: Ints, pages: Ints, is_causal: bool) -> Rows:
        q_starts, page_starts = _starts(n_new), _starts(n_pages)
        return cls(q_starts, page_starts, _ints(pages), _ints(n_pages > 0), is_causal)


def _starts(counts: Ints) -> Tensor:
    return _ints(np.concatenate([[0], counts.cumsum()]))


def _ints(values: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int32))


@dataclass(frozen=True, slots=True)
class Batch:
    """own: every row, without the trunk that it shares. trunks: None if no rows share one; their
    tokens come first. order: [n_tokens], which of the batch's tokens is at each place; None if the
    order is unchanged.
    """

    own: Rows
    trunks: Rows | None = None
    order: Tensor | None = None

    @property
    def n_shared(self) -> int:
        """The tokens that share a trunk."""
        return 0 if self.trunks is None else int(self.trunks.q_starts[-1])


def sent(values: Tensor, device: torch.device) -> Tensor:
    """The values on the device, from pinned memory, so that the host does not wait."""
    pinned = values.pin_memory() if device.type == "cuda" else values
    return pinned.to(device, non_blocking=True)


def whole(ragged: Ragged) -> Batch:
    """Every row with all of its pages."""
    n_new, n_pages = ragged.row_starts.diff().numpy(), ragged.page_starts.diff().numpy()
    return Batch(Rows.of(n_new, n_pages, ragged.pages.numpy(), is_causal=True))


def cascaded(
    ragged: Ragged, min_pages: int = MIN_SHARED_PAGES, min_saved: int = MIN_SAVED_READS
) -> Batch:
    """Rows with separate trunks, where that saves enough."""
    n_new, n_pages = ragged.row_starts.diff().numpy(), ragged.page_starts.diff().numpy()
    pages, page_starts = ragged.pages.numpy(), ragged.page_starts.numpy()
    trunks = shared_prefixes(
        pages, page_starts, n_pages - n_new, min_pages=min_pages, min_saved=min_saved
    )
    if not trunks:
        return whole(ragged)
    n_trunk = np.zeros(ragged.n_rows, np.int64)
    for trunk in trunks:
        n_trunk[trunk.rows] = trunk.n_pages
    rows = _adjacent(trunks, ragged.n_rows)
    order = ranges(ragged.row_starts.numpy()[rows], n_new[rows])
    starts = (page_starts[:-1] + n_trunk)[rows]
    own_pages = pages[ranges(starts, (n_pages - n_trunk)[rows])]
    is_moved = bool((np.diff(order) != 1).any())
    return Batch(
        Rows.of(n_new[rows], (n_pages - n_trunk)[rows], own_pages, is_causal=True),
        _trunk_rows(trunks, n_new, pages, page_starts),
        torch.from_numpy(order) if is_moved else None,
    )


def _adjacent(trunks: Sequence[SharedPrefix], n_rows: int) -> Ints:
    """All rows, those of each trunk first and adjacent."""
    of_trunks = np.concatenate([trunk.rows for trunk in trunks])
    return np.concatenate([of_trunks, np.setdiff1d(np.arange(n_rows), of_trunks)])


def _trunk_rows(
    trunks: Sequence[SharedPrefix], n_new: Ints, pages: Ints, page_starts: Ints
) -> Rows:
    """A row for each trunk."""
    n_tokens = np.array([n_new[trunk.rows].sum() for trunk in trunks])
    n_pages = np.array([trunk.n_pages for trunk in trunks])
    firsts = page_starts[[int(trunk.rows[0]) for trunk in trunks]]
    return Rows.of(n_tokens, n_pages, pages[ranges(firsts, n_pages)], is_causal=False)
