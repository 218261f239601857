"""Which choice a select takes, from the log-probabilities of the choices' tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sgc.runtime.executor.backend import GREEDY_BELOW, ChoiceScore

Scores = Sequence[ChoiceScore]


def token_length_normalized(scores: Scores) -> list[float]:
    """Mean log-probability of a token; prefers long, self-predictable choices."""
    return [math.fsum(score.logprobs) / len(score.logprobs) for score in scores]


def joint(scores: Scores) -> list[float]:
    """Log-probability of the whole choice."""
    return [math.fsum(score.logprobs) for score in scores]


def greedy_token_selection(scores: Scores) -> list[float]:
    """0 for the choice that wins token by token, -inf for the others.

    A choice that has ended goes on with the mean of its own tokens.
    """
    rows = [list(score.logprobs) for score in scores]
    means = token_length_normalized(scores)
    alive = list(range(len(rows)))
    for column in range(max(map(len, rows))):
        at = [rows[i][column] if column < len(rows[i]) else means[i] for i in alive]
        best = max(at)
        alive = [i for i, value in zip(alive, at, strict=True) if value == best]
        if len(alive) == 1:
            break
    return [0.0 if i == alive[0] else -math.inf for i in range(len(rows))]


METHODS: dict[str, Callable[[Scores], list[float]]] = {
    "token_length_normalized": token_length_normalized,
    "greedy_token_selection": greedy_token_selection,
    "joint": joint,
}


def pick(scores: Scores, method: str, temperature: float, uniform: float) -> int:
    """Index of the choice taken: the best, or one drawn by `uniform` in [0, 1).

    Ties go to the first. Above greedy the scores, divided by the temperature, are the
    logits of the draw.
    """
    values = METHODS[method](scores)
    if temperature < GREEDY_BELOW:
        return values.index(max(values))
    best = max(values)
    weights = [math.exp((value - best) / temperature) for value in values]
    at = uniform * math.fsum(weights)
    for index, weight in enumerate(weights):
        at -= weight
        if at < 0:
            return index
    return len(weights) - 1
