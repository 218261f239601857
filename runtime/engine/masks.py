"""Which tokens constraints allow, found out while the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.request import Generate, Guide, Work

Allowed = npt.NDArray[np.bool_]


class Masks:
    """Call `begin` before a step's forward and `finish` after it."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._n_words = (vocab_size + 1 + 31) // 32  # one bit more, for the end of the text
        self._threads: ThreadPoolExecutor | None = None
        self._works: Sequence[Work] = ()
        self._bits: Future[Allowed] | None = None

    def begin(self, works: Sequence[Work]) -> None:
        """works: those under a constraint that are to get a token."""
        self._works, self._bits = works, None  # a step that failed may have left some
        if not works:
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "masks")
        guides = [work.guide for work in works if work.guide is not None]
        self._bits = self._threads.submit(self._fill, guides)

    def finish(self) -> dict[Work, Allowed]:
        """[vocab] for each; a token that ends the text is allowed where the text may end."""
        if self._bits is None:
            return {}
        bits, self._bits = self._bits.result(), None
        return {
            work: self._with_ends(work, row) for work, row in zip(self._works, bits, strict=True)
        }

    def _fill(self, guides: Sequence[Guide]) -> Allowed:
        words = np.zeros((len(guides), self._n_words), np.int32)
        for guide, row in zip(guides, words, strict=True):
            guide.write_mask(row)
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        return bits.view(np.bool_)

    def _with_ends(self, work: Work, bits: Allowed) -> Allowed:
        kind = work.request.kind
        assert isinstance(kind, Generate)
        may_end = bool(bits[self._vocab_size]) and work.n_generated >= kind.min_tokens
        allowed = bits[: self._vocab_size]
        allowed[list(kind.stop_ids)] = may_end
        return allowed
