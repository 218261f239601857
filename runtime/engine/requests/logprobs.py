"""The log-probabilities that a request asks for, of prompt and generated tokens.

They are the model's own, before temperature, penalties, bias and constraint. A token's
log-probability comes from the logits of the position before it, so that position is run even if it
is cached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.requests.finite import check_finite

Row = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural logarithms. logprob: None for the first token of a prompt. top: the likeliest tokens
    at its position, likeliest first."""

    id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()


class LogprobLog:
    """The log-probabilities of one request's tokens from index `first` on."""

    def __init__(self, first: int, n_prompt: int, top: int, streams: bool = False) -> None:
        """streams: whether they are told while tokens come."""
        self.streams = streams
        self._told: int | None = None  # the next index to tell; None before the prompt's are told
        self._first = first
        self._n_prompt = n_prompt
        self._top = top
        self._known: dict[int, TokenLogprob] = {}
        self._next = max(first, 1)  # the next unknown index; token 0 has no log-probability

    @property
    def n_unneeded(self) -> int:
        """How many leading positions need not be run for the log-probabilities still missing."""
        return self._next - 1

    def wants(self, index: int) -> bool:
        return index >= self._next

    def note(self, index: int, token: int, row: Row) -> None:
        """Records a token's log-probability; indexes must come in order.

        row: [vocab], the logits of the position before.
        """
        total = log_sum_exp(row)
        top = tuple((i, float(row[i]) - total) for i in likeliest(row, self._top))
        self._known[index] = TokenLogprob(token, float(row[token]) - total, top)
        self._next = index + 1

    def of_prompt(self, first_token: int) -> tuple[TokenLogprob, ...]:
        known = [self._known[i] for i in range(max(self._first, 1), self._n_prompt)]
        head = [TokenLogprob(first_token, None)] if self._first == 0 else []
        return (*head, *known)

    def untold(self, first_token: int) -> tuple[tuple[TokenLogprob, ...], tuple[TokenLogprob, ...]]:
        """Those of generated tokens since the last call, and at the first call those of the prompt;
        none if they are told at the end."""
        if not self.streams:
            return (), ()
        prompt = self.of_prompt(first_token) if self._told is None else ()
        start = self._n_prompt if self._told is None else self._told
        self._told = max(start, self._next)
        return tuple(self._known[i] for i in range(start, self._told)), prompt

    def of_generated(self) -> tuple[TokenLogprob, ...]:
        return tuple(self._known[i] for i in range(self._n_prompt, self._next))


def likeliest(row: Row, k: int) -> list[int]:
    """The ids of the k largest, largest first; among equals, the lower ids."""
    k = min(k, len(row))
    if k == 0:
        return []
    least = np.partition(row, len(row) - k)[len(row) - k]
    found = np.flatnonzero(row >= least)
    order = np.argsort(-row[found], kind="stable")[:k]
    return [int(i) for i in found[order]]


def log_sum_exp(row: Row) -> float:
    """Raises NotFinite for a row that holds a NaN or an infinity, or no finite number."""
    wide = row.astype(np.float64)
    best = wide.max()
    check_finite(best)
    return float(best + np.log(np.exp(wide - best).sum()))
