"""The fake model as one with a recurrent layer: its state is the number that the page of the last
token holds, so a state of another sequence, or of another place in it, is found at once."""

from __future__ import annotations

import numpy as np

from sgc.runtime.engine.cache.states import EMPTY, FIRST, SCRAP
from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.model.forward import FlatBatch

_JUNK = np.uint64(1)  # in a slot that nothing was written to


class WithStates:
    """A `Forward`."""

    def __init__(self, model: FakeModel, n_slots: int) -> None:
        self._model = model
        self._slots = np.full(FIRST + n_slots, _JUNK)

    def run(self, batch: FlatBatch) -> np.ndarray:
        found = self._model.run(batch)
        self._go_on(batch)
        return found

    def hidden(self, batch: FlatBatch) -> np.ndarray:
        found = self._model.hidden(batch)
        self._go_on(batch)
        return found

    def _go_on(self, batch: FlatBatch) -> None:
        """Rows in order, so that each may read what those before it write."""
        assert batch.states is not None
        of_page = self._model._prefix
        for row in range(batch.n_rows):
            pages = batch.pages[batch.page_starts[row] : batch.page_starts[row + 1]]
            n = int(batch.row_starts[row + 1] - batch.row_starts[row])
            reads, writes = batch.states[:, row].tolist()
            start = len(pages) - n
            assert n > 0
            assert (reads == EMPTY) == (start == 0), "a sequence begins with another's state"
            if start:
                assert self._slots[reads] == of_page[pages[start - 1]], "not the state before it"
            assert writes != EMPTY
            if writes != SCRAP:
                self._slots[writes] = of_page[pages[-1]]
