"""Which tokens constraints allow, found out while the model runs if that takes any time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.request import Generate, Guide, Work

Allowed = npt.NDArray[np.bool_]
# What it costs, about, to hand work to a thread, which takes the lock from the model.
HANDOVER_S = 0.0005


class Masks:
    """Call `begin` before a step's forward and `finish` after it."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._n_words = (vocab_size + 1 + 31) // 32  # one bit more, for the end of the text
        self._threads: ThreadPoolExecutor | None = None
        self._works: Sequence[Work] = ()
        self._bits: Future[Allowed] | Allowed | None = None
        self._fill_s = 0.0  # what it took last

    def begin(self, works: Sequence[Work]) -> None:
        """works: those under a constraint that are to get a token."""
        self._works, self._bits = works, None  # a step that failed may have left some
        if not works:
            return
        guides = [work.guide for work in works if work.guide is not None]
        if self._fill_s < HANDOVER_S:
            self._bits = self._fill(guides)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "masks")
        self._bits = self._threads.submit(self._fill, guides)

    def finish(self) -> dict[Work, Allowed]:
        """[vocab] for each; a token that ends the text is allowed where the text may end."""
        bits, self._bits = self._bits, None
        if bits is None:
            return {}
        if isinstance(bits, Future):
            bits = bits.result()
        return {
            work: self._with_ends(work, row) for work, row in zip(self._works, bits, strict=True)
        }

    def _fill(self, guides: Sequence[Guide]) -> Allowed:
        started_s = time.perf_counter()
        words = np.zeros((len(guides), self._n_words), np.int32)
        for guide, row in zip(guides, words, strict=True):
            guide.write_mask(row)
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        self._fill_s = time.perf_counter() - started_s
        return bits.view(np.bool_)

    def _with_ends(self, work: Work, bits: Allowed) -> Allowed:
        kind = work.request.kind
        assert isinstance(kind, Generate)
        assert work.guide is not None
        says_so = bool(bits[self._vocab_size]) and work.guide.may_end
        may_end = says_so and work.n_generated >= kind.min_tokens
        allowed = bits[: self._vocab_size]
        allowed[list(kind.stop_ids)] = may_end
        return allowed
