"""The free list of KV pages. It owns page ids, not tensors: a page is one token's place in every
layer's pool. The caller keeps track of who holds a reserved page."""

from __future__ import annotations

import numpy as np

from sgc.runtime.engine.ints import Ints


class PagePool:
    """Reserves and releases the page ids 0 … n_pages-1."""

    def __init__(self, n_pages: int) -> None:
        assert n_pages > 0
        self.n_pages = n_pages
        self._free: Ints = np.arange(n_pages - 1, -1, -1, dtype=np.int64)
        self.n_free = n_pages

    def reserve(self, n: int) -> Ints:
        """Takes `n` pages; the caller has checked that `n` are free."""
        assert 0 <= n <= self.n_free, f"{n} pages asked, {self.n_free} free"
        self.n_free -= n
        return self._free[self.n_free : self.n_free + n].copy()

    def release(self, pages: Ints) -> None:
        assert self.n_free + len(pages) <= self.n_pages, "more pages released than reserved"
        self._free[self.n_free : self.n_free + len(pages)] = pages
        self.n_free += len(pages)

    def check(self, *held: Ints) -> None:
        """Verifies that the free pages and `held` together are every page exactly once."""
        pages = np.concatenate([self._free[: self.n_free], *held])
        assert len(pages) == self.n_pages, f"{len(pages)} of {self.n_pages} pages are accounted for"
        is_page = (pages >= 0) & (pages < self.n_pages)
        assert is_page.all(), f"there is no page {pages[~is_page][0]}"
        is_held = np.zeros(self.n_pages, dtype=bool)
        is_held[pages] = True  # an engine that checks itself does so at each step: no sorting
        assert is_held.all(), "a page has two holders"
