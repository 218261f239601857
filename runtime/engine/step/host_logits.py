"""Logits in the host's memory, as the step reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.logprobs import log_sum_exp
from sgc.runtime.engine.step.sampler import sample

Floats = npt.NDArray[np.float32]


class HostLogits:
    """A `Logits` of an array: [n_logits, vocab]."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def rows(self, at: Sequence[int]) -> Iterator[Floats]:
        for index in at:
            yield self._values[index]

    def draw(self, at: Sequence[int], draws: Sequence[Draw]) -> list[int]:
        return sample(self._at(at), draws)

    def log_probabilities(self, at: Sequence[int], tokens: Sequence[int]) -> list[float]:
        norms = {index: _norm(self._values[index]) for index in set(at)}
        return [
            float(self._values[index, token]) - norms[index]
            for index, token in zip(at, tokens, strict=True)
        ]

    def _at(self, at: Sequence[int]) -> Floats:
        """Not a copy if they follow one another."""
        if len(at) == 1 or (at and list(at) == list(range(at[0], at[0] + len(at)))):
            return self._values[at[0] : at[-1] + 1]
        return self._values[list(at)]


def _norm(row: Floats) -> float:
    try:
        return log_sum_exp(row)
    except NotFinite:
        return math.nan
