"""A plan for decode steps that are captured in CUDA graphs: its arrays stay where they are on the
device, and are filled anew for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sgc.kernels.interface import Ragged
from sgc.kernels.triton.paged.blocks import Shape, few_rows, many_rows
from sgc.kernels.triton.paged.items import (
    ITEM_WIDTH,
    MIN_SPLIT,
    SHARING,
    Ints,
    Sharing,
    most_splits,
    plan_items,
)
from sgc.kernels.triton.paged.launch import DeviceItems
from sgc.kernels.triton.paged.transfer import Packing


@dataclass(frozen=True, slots=True)
class _Capacity:
    """The most that a batch of n_rows rows with one token each and max_pages pages needs."""

    few: int
    many: int
    tokens: int
    parts: int


def _capacity(n_rows: int, max_pages: int, shape: Shape, shares: bool) -> _Capacity:
    """A batch has one tile for each row, and tiles of shared prefixes, at most one for each row;
    `items._splits` says how many items these become."""
    n_few, n_many = few_rows(shape) // shape.group, many_rows(shape) // shape.group
    few_splits = min(most_splits(False, shape), max_pages // MIN_SPLIT)
    if not shares:
        return _Capacity(n_rows + few_splits, 0, n_rows, n_rows + few_splits)
    many_splits = min(most_splits(True, shape), max_pages // MIN_SPLIT)
    # A prefix with few tokens has one tile; one with many leaves one tile at most that is not full.
    many_tiles = n_rows // n_many + n_rows // (n_few + 1)
    return _Capacity(
        few=n_rows + n_rows // 2 + few_splits,
        many=many_tiles + many_splits,
        tokens=2 * n_rows,
        parts=2 * n_rows + n_few * few_splits + n_many * many_splits,
    )


class _Static:
    """The items of one window and shape of heads: where they lie, and how they are filled."""

    def __init__(
        self, device: torch.device, n_rows: int, capacity: _Capacity, window: int | None
    ) -> None:
        self._device, self._window = device, window
        self._packing = Packing(
            [
                capacity.few * ITEM_WIDTH,
                capacity.many * ITEM_WIDTH,
                capacity.tokens,
                n_rows,
                n_rows + 1,
                n_rows,
            ]
        )
        self._packed = torch.zeros(self._packing.n_numbers, dtype=torch.int32, device=device)
        self.items = DeviceItems(capacity.parts, *self._packing.views(self._packed))

    def fill(
        self,
        row_starts: Ints,
        page_starts: Ints,
        pages: Ints,
        shape: Shape,
        sharing: Sharing | None,
    ) -> None:
        items = plan_items(
            row_starts,
            page_starts,
            pages,
            shape,
            window=self._window,
            shares=sharing is not None,
            sharing=sharing or SHARING,
        )
        assert items.n_parts <= self.items.n_parts, "more parts than there is place for"
        *arrays, merged = items.arrays()
        ended = np.full(len(row_starts) - 1, -1, np.int32)
        ended[: len(merged)] = merged
        host = self._packing.host([*arrays, ended], self._device)
        self._packed.copy_(host, non_blocking=True)


class DecodePlan:
    """See `TritonAttention.decode_plan`. Before it is filled, all rows are empty.

    pages: memory for a batch's pages. sharing: when rows attend together to shared prefixes; None
    for never.
    """

    def __init__(
        self,
        pages: Tensor,
        n_rows: int,
        windows: Sequence[int | None],
        sharing: Sharing | None,
    ) -> None:
        self.n_tokens, self.max_pages, self.pages = n_rows, len(pages), pages
        self._windows = frozenset(windows)
        self._sharing = sharing
        self._made: dict[tuple[int | None, Shape], _Static] = {}
        self._row_starts = np.arange(n_rows + 1)
        self._page_starts = np.zeros(n_rows + 1, np.int64)
        self._host_pages = np.zeros(0, np.int64)

    def fill(self, ragged: Ragged) -> bool:
        """Takes a batch of decode rows; missing rows are empty. Returns False, without a change, if
        the batch does not fit: too many rows or pages, or a row of several tokens.

        Not to be captured: captured kernels read the last batch filled in, in the stream's order.
        """
        n_rows, n_pages = ragged.n_rows, len(ragged.pages)
        is_decode = len(ragged.row_starts) - 1 == int(ragged.row_starts[-1])
        if not is_decode or n_rows > self.n_tokens or n_pages > self.max_pages:
            return False
        self._host_pages = ragged.pages.numpy()
        self._page_starts = np.full(self.n_tokens + 1, n_pages)
        self._page_starts[: n_rows + 1] = ragged.page_starts.numpy()
        packing = Packing([n_pages])
        host = packing.host([self._host_pages], self.pages.device)
        self.pages[:n_pages].copy_(host[:n_pages], non_blocking=True)
        for (_, shape), static in self._made.items():
            self._fill(static, shape)
        return True

    def items(self, window: int | None, shape: Shape) -> DeviceItems:
        """Raises if a layer of this kind is met first while a graph is captured."""
        assert window in self._windows, f"no layer was to have a window of {window}"
        if window is not None and window >= self.max_pages:
            window = None
        key = window, shape
        if key not in self._made:
            if self.pages.is_cuda and torch.cuda.is_current_stream_capturing():
                raise RuntimeError("a layer must attend once before its graph is captured")
            capacity = _capacity(self.n_tokens, self.max_pages, shape, self._sharing is not None)
            self._made[key] = _Static(self.pages.device, self.n_tokens, capacity, window)
            self._fill(self._made[key], shape)
        return self._made[key].items

    def _fill(self, static: _Static, shape: Shape) -> None:
        static.fill(self._row_starts, self._page_starts, self._host_pages, shape, self._sharing)
