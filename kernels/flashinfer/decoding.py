"""Plans of decoding steps in memory that stays, as graphs need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sgc.kernels.flashinfer.inputs import Rows, cascaded, sent, whole
from sgc.kernels.flashinfer.library import Kind, Library, Planned, plan_rows
from sgc.kernels.flashinfer.workspace import Workspace
from sgc.kernels.interface import Ragged

# Page reads that sharing must save to be worth a step without its graph. An estimate, not measured:
# a layer then takes a dozen launches, 0.2 ms of the host's time, in which a GPU may read so many
# pages of 4 KiB.
MIN_SAVED_OUTSIDE = 1 << 17


class DecodePlan:
    """Static arrays of a batch of `n_rows` rows with one new token each, for a graph. Rows that a
    batch lacks have neither tokens nor pages."""

    def __init__(
        self,
        library: Library,
        workspace: Workspace,
        n_rows: int,
        pages: Tensor,
        make_fallback: Callable[[], Any],
    ) -> None:
        """pages: memory for a batch's pages, which other plans share, so that no two plans may be
        filled before one runs. make_fallback: makes the other backend's plan, if a layer needs
        it."""
        self._library, self._workspace = library, workspace
        self.n_rows, self._max_pages = n_rows, len(pages)
        self.make_fallback, self.fallback = make_fallback, None
        starts, ones = pages.new_zeros(n_rows + 1), pages.new_zeros(n_rows)
        self._buffers = Rows(starts, torch.zeros_like(starts), pages, ones, is_causal=True)
        self._wrappers: dict[Kind, Planned] = {}
        self._full = self._rows_of_one_page()

    def planned(self, kind: Kind) -> Planned:
        """Called before or while a graph is captured: the first plan decides how many tokens there
        may be."""
        if kind not in self._wrappers:
            wrapper = self._library.planned(self._workspace.of(kind, self.n_rows), self._buffers)
            plan_rows(wrapper, kind, self._full, self._full.pages)
            self._wrappers[kind] = wrapper
        return self._wrappers[kind]

    def fill(self, ragged: Ragged) -> bool:
        if ragged.n_rows > self.n_rows or len(ragged.pages) > self._max_pages:
            return False
        if cascaded(ragged, min_saved=MIN_SAVED_OUTSIDE).trunks is not None:
            return False
        rows = _padded(whole(ragged).own, self.n_rows)
        pages = sent(rows.pages, self._buffers.pages.device)
        for kind, wrapper in self._wrappers.items():
            plan_rows(wrapper, kind, rows, pages)
        return self.fallback is None or bool(self.fallback.fill(ragged))

    def _rows_of_one_page(self) -> Rows:
        one = torch.ones(self.n_rows, dtype=torch.int32)
        starts = torch.arange(self.n_rows + 1, dtype=torch.int32)
        return Rows(starts, starts, torch.zeros(self.n_rows, dtype=torch.int32), one, True)


def _padded(rows: Rows, n_rows: int) -> Rows:
    n = n_rows - len(rows.last_page_tokens)

    def longer(starts: Tensor) -> Tensor:
        return torch.cat([starts, starts[-1:].expand(n)])

    last = torch.cat([rows.last_page_tokens, rows.last_page_tokens.new_zeros(n)])
    return Rows(longer(rows.q_starts), longer(rows.page_starts), rows.pages, last, rows.is_causal)
