"""Computes which tokens constraints allow, while the model runs if it takes long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.requests.request import Generate, Work
from sgc.runtime.engine.step.faults import Faults

Allowed = npt.NDArray[np.bool_]
# About what it costs to hand work to a thread, which takes the GIL from the model.
HANDOVER_S = 0.0005


class Masks:
    """Call `begin` before a step's forward pass and `finish` after it."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._n_words = (vocab_size + 1 + 31) // 32  # one more bit, for the end of text
        self._threads: ThreadPoolExecutor | None = None
        self._works: Sequence[Work] = ()
        self._faults = Faults()
        self._bits: Future[Allowed] | Allowed | None = None
        self._fill_s = 0.0  # the last time of `_fill`

    def begin(self, works: Sequence[Work], faults: Faults) -> None:
        """works: the requests that get a token. faults: of the step, complete after `finish`."""
        works = [work for work in works if work.decoding.guide is not None]
        # Replaces what a failed step may have left.
        self._works, self._faults, self._bits = works, faults, None
        if not works:
            return
        if self._fill_s < HANDOVER_S:
            self._bits = self._fill(works, faults)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "masks")
        self._bits = self._threads.submit(self._fill, works, faults)

    def finish(self) -> dict[Work, Allowed]:
        """The allowed tokens, [vocab] each; stop tokens are allowed if the text may end."""
        bits, self._bits = self._bits, None
        if bits is None:
            return {}
        if isinstance(bits, Future):
            bits = bits.result()
        allowed: dict[Work, Allowed] = {}
        for work, row in zip(self._works, bits, strict=True):
            if work in self._faults:
                continue
            try:
                allowed[work] = self._with_ends(work, row)
            except BaseException as error:
                self._faults.note(work, error)
        return allowed

    def _fill(self, works: Sequence[Work], faults: Faults) -> Allowed:
        started_s = time.perf_counter()
        words = np.zeros((len(works), self._n_words), np.int32)
        for work, row in zip(works, words, strict=True):
            assert work.decoding.guide is not None
            try:
                work.decoding.guide.write_mask(row)
            except BaseException as error:
                faults.note(work, error)
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        self._fill_s = time.perf_counter() - started_s
        return bits.view(np.bool_)

    def _with_ends(self, work: Work, bits: Allowed) -> Allowed:
        kind = work.request.kind
        assert isinstance(kind, Generate)
        assert work.decoding.guide is not None
        says_so = bool(bits[self._vocab_size]) and work.decoding.guide.may_end
        may_end = says_so and work.n_generated >= kind.min_tokens
        allowed = bits[: self._vocab_size]
        allowed[list(kind.stop_ids)] = may_end
        return allowed
