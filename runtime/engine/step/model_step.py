"""The model's part of a step: it runs the batch, and draws the tokens. While the model runs, the
tokens that constraints allow are found.

`core.py` decides what runs, and what happens to the tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.images.image import Image
from sgc.runtime.engine.model.forward import Drawn, Embedder, Forward, Logits, Sees
from sgc.runtime.engine.requests.request import Work
from sgc.runtime.engine.step.ahead import tokens_of
from sgc.runtime.engine.step.batch import StepBatch, log_tokens, pool_hidden, write_logprobs
from sgc.runtime.engine.step.counts import Counters
from sgc.runtime.engine.step.drawing import draw_tokens
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.host_logits import HostLogits
from sgc.runtime.engine.step.masks import Masks


class ModelStep:
    """counters: to which the model's time is added. is_ahead: whether `forward` returns before its
    logits are there, so that waiting for them counts as the model's time. note: called with each
    step's positions and seconds."""

    def __init__(
        self,
        forward: Forward,
        vocab_size: int,
        counters: Counters,
        *,
        is_ahead: bool,
        note: Callable[[int, float], None] | None = None,
    ) -> None:
        self._forward, self._is_ahead = forward, is_ahead
        self._vocab_size, self._masks = vocab_size, Masks(vocab_size)
        self._counters, self._note = counters, note

    def run(self, batch: StepBatch, faults: Faults) -> Logits:
        started_s = time.perf_counter()
        constrained = [work for work, _ in batch.sampled]
        if not self._is_ahead:
            self._masks.begin(constrained, faults)
        if batch.images:
            self._see(batch, faults)
        given = self._run(batch, faults)
        if self._is_ahead:
            self._masks.begin(constrained, faults)
        took_s = time.perf_counter() - started_s
        self._counters.forward_s += took_s
        if self._note is not None:
            self._note(batch.n_tokens, took_s)
        return HostLogits(given) if isinstance(given, np.ndarray) else given

    def _see(self, batch: StepBatch, faults: Faults) -> None:
        """Encodes the batch's images, each once; one that fails ends only its own requests."""
        forward = cast(Sees, self._forward)
        forward.forget_seen()
        done: dict[bytes, BaseException | None] = {}
        for work, image in batch.images:
            if image.digest not in done:
                done[image.digest] = self._encode(forward, image)
            if (error := done[image.digest]) is not None:
                faults.note(work, error)

    def _encode(self, forward: Sees, image: Image) -> BaseException | None:
        try:
            is_new = forward.see(image)
        except Exception as error:
            return error
        self._counters.encoded_images += is_new
        self._counters.reused_images += not is_new
        return None

    def _run(self, batch: StepBatch, faults: Faults) -> npt.NDArray[np.float32] | Logits:
        if batch.hidden is None:
            return self._forward.run(batch.flat)
        # A separate pass: all wanted positions of a pass go through the head, or none.
        forward = cast(Embedder, self._forward)
        pool_hidden(batch, forward.hidden(batch.hidden), faults)
        if batch.flat.n_rows == 0:
            return np.empty((0, self._vocab_size), np.float32)
        return self._forward.run(batch.flat)

    def tokens(
        self, batch: StepBatch, logits: Logits, drawn: Drawn | None, faults: Faults
    ) -> dict[Work, list[int] | None]:
        """The step's tokens; log-probabilities are written to its requests. drawn: tokens that are
        being drawn already, where the logits are."""
        started_s = time.perf_counter()
        if drawn is not None:
            tokens = tokens_of(batch, drawn, faults)
        else:
            write_logprobs(batch, logits, faults)
            tokens = draw_tokens(batch, logits, self._masks.finish(), faults)
            log_tokens(batch, logits, tokens, faults)
        if self._is_ahead:  # until now the model ran
            self._counters.forward_s += time.perf_counter() - started_s
        return tokens
