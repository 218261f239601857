"""The state that penalties need of one request: which tokens it has seen, and how often it
generated each. Only requests with a penalty have it; it is updated token by token."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.ints import Ints


class Penalties:
    """seen: [vocab], whether in the prompt or generated. counts: [vocab], how often generated."""

    def __init__(self, prompt: Ints, vocab_size: int) -> None:
        self.seen: npt.NDArray[np.bool_] = np.zeros(vocab_size, np.bool_)
        self.seen[prompt[prompt >= 0]] = True  # those below zero stand for images
        self.counts: npt.NDArray[np.float32] = np.zeros(vocab_size, np.float32)

    def add(self, token: int) -> None:
        self.seen[token] = True
        self.counts[token] += 1
