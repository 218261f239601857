"""The bytes of a model's pages, as they are taken to disk and back. Models implement it."""

from __future__ import annotations

from typing import Protocol

from sgc.runtime.engine.ints import Bytes, Ints


class PageBytes(Protocol):
    """token_bytes: of one page, in all layers."""

    token_bytes: int

    def read(self, pages: Ints) -> Bytes:
        """A copy of the pages: [len(pages) * token_bytes]."""
        ...

    def write(self, pages: Ints, data: Bytes) -> None:
        """Fills the pages with the last len(pages) pages in `data`."""
        ...
