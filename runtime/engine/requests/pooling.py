"""One vector of a request's hidden states: the last token's, the first's, or the mean of all.

Hidden states are a position's after the model's last norm, as its head gets them. A position whose
hidden state is needed is run even if it is cached. The vector is not normalized here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.ints import NO_INTS, Ints
from sgc.runtime.engine.names import FIRST_TOKEN, LAST_TOKEN
from sgc.runtime.engine.requests.finite import NotFinite


class Pooled:
    """pooling: one of `names.POOLINGS`."""

    def __init__(self, pooling: str, n_prompt: int) -> None:
        self._pooling, self._n_prompt = pooling, n_prompt
        self._sum: npt.NDArray[np.float64] | None = None
        self._n = 0

    @property
    def n_unneeded(self) -> int:
        """How many leading positions need not be run."""
        return self._n_prompt - 1 if self._pooling == LAST_TOKEN else 0

    def wanted(self, start: int, n: int) -> Ints:
        """Which of `n` positions from `start` on count, from the first of them."""
        if self._pooling == LAST_TOKEN:
            return np.array([n - 1], np.int64) if start + n == self._n_prompt else NO_INTS
        if self._pooling == FIRST_TOKEN:
            return np.zeros(1, np.int64) if start == 0 else NO_INTS
        return np.arange(n)

    def add(self, start: int, hidden: npt.NDArray[np.float32]) -> None:
        """Adds the hidden states of the wanted positions: [n_wanted, hidden]. A preempted request
        begins again at 0. Raises NotFinite."""
        if not np.isfinite(hidden).all():
            raise NotFinite("the model gave hidden states that are not finite numbers")
        if start == 0 or self._sum is None:
            self._sum, self._n = np.zeros(hidden.shape[1]), 0
        for row in hidden:  # one by one, so that the sum does not depend on how the prompt was cut
            self._sum += row
        self._n += len(hidden)

    @property
    def vector(self) -> tuple[float, ...]:
        assert self._sum is not None, "no position has been run"
        return tuple((self._sum / self._n).astype(np.float32).tolist())
