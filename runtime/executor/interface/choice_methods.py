"""The methods of `select`: which choice wins, by the log-probabilities of the choices' tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgc.errors import UsageError
from sgc.ir.sampling import GREEDY_BELOW
from sgc.runtime.executor.interface.backend import ChoiceScore

Scores = Sequence[ChoiceScore]


def token_length_normalized(scores: Scores) -> list[float]:
    """Mean log-probability of the choice's tokens; prefers long, predictable choices."""
    return [math.fsum(score.logprobs) / len(score.logprobs) for score in scores]


def joint(scores: Scores) -> list[float]:
    """Log-probability of the whole choice."""
    return [math.fsum(score.logprobs) for score in scores]


def greedy_token_selection(scores: Scores) -> list[float]:
    """0 for the choice that wins token by token, -inf for the others.

    A choice that has ended continues with the mean of its own tokens.
    """
    rows = _matrix(scores)
    alive = list(range(len(rows)))
    for column in range(len(rows[0])):
        at = [rows[i][column] for i in alive]
        best = max(at)
        alive = [i for i, value in zip(alive, at, strict=True) if value == best]
        if len(alive) == 1:
            break
    return [0.0 if i == alive[0] else -math.inf for i in range(len(rows))]


def unconditional_likelihood_normalized(scores: Scores) -> list[float]:
    """Mean increase of the tokens' log-probabilities by the prompt.

    A token whose log-probability without the prompt is unknown counts with its own.
    """
    return [
        math.fsum(
            given - (alone or 0.0)
            for given, alone in zip(score.logprobs, score.unconditional, strict=True)
        )
        / len(score.logprobs)
        for score in scores
    ]


METHODS: dict[str, Callable[[Scores], list[float]]] = {
    "token_length_normalized": token_length_normalized,
    "greedy_token_selection": greedy_token_selection,
    "unconditional_likelihood_normalized": unconditional_likelihood_normalized,
    "joint": joint,
}
DEFAULT = "token_length_normalized"
NEEDS_UNCONDITIONAL = frozenset({"unconditional_likelihood_normalized"})


def pick(scores: Scores, method: str, temperature: float, uniform: float) -> int:
    """Returns the index of the winner: the best choice, or one drawn by `uniform` in [0, 1).

    Ties go to the first. If not greedy, the logits are the scores divided by the temperature.
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


def decide(
    method: Any, choices: Sequence[str], scores: Scores
) -> tuple[int, Mapping[str, Any] | None]:
    """Returns the index that a user's method chooses, and its meta info.

    method: an object with the interface of SGLang's methods.
    """
    unconditional = [_rows(score, score.unconditional) for score in scores]
    found = method(
        choices=list(choices),
        **_token_logprobs(scores),
        unconditional_token_logprobs=unconditional if scores[0].unconditional else None,
    )
    decision = found.decision
    if decision not in choices:
        raise UsageError(f"choices_method chose {decision!r}, which is not among the choices")
    return list(choices).index(decision), getattr(found, "meta_info", None)


def select_meta(method: Any, scores: Scores) -> dict[str, Any]:
    """Returns the meta info of a select (`get_meta_info`): SGLang's keys, and probabilities."""
    joint_logprobs = joint(scores)
    best = max(joint_logprobs)
    weights = [math.exp(value - best) for value in joint_logprobs]
    found: dict[str, Any] = {
        **_token_logprobs(scores),
        "joint_logprobs": joint_logprobs,
        "probabilities": [weight / math.fsum(weights) for weight in weights],
    }
    if method == "greedy_token_selection":
        found["greedy_logprob_matrix"] = _matrix(scores)
    if method == "unconditional_likelihood_normalized":
        found["unconditional_token_logprobs"] = [_rows(s, s.unconditional) for s in scores]
        found["normalized_unconditional_prompt_logprobs"] = METHODS[method](scores)
    return found


def _token_logprobs(scores: Scores) -> dict[str, Any]:
    """The arguments of SGLang's methods, which are also in the meta info."""
    return {
        "normalized_prompt_logprobs": token_length_normalized(scores),
        "input_token_logprobs": [_rows(score, score.logprobs) for score in scores],
        "output_token_logprobs": [list(map(list, score.after)) for score in scores],
    }


def _rows(score: ChoiceScore, logprobs: Sequence[float | None]) -> list[list[Any]]:
    """Rows as SGLang's servers return them: the token before comes first, without a value."""
    texts = score.texts or (None,) * len(score.ids)
    rows = zip(logprobs, score.ids, texts, strict=False)
    return [*map(list, score.before), *map(list, rows)]


def _matrix(scores: Scores) -> list[list[float]]:
    """Log-probabilities by choice and position; a choice that has ended continues with its mean."""
    width = max(len(score.logprobs) for score in scores)
    means = token_length_normalized(scores)
    return [
        [*score.logprobs, *[mean] * (width - len(score.logprobs))]
        for score, mean in zip(scores, means, strict=True)
    ]
