"""Draws the next token of each row from its logits. It runs on the host, in numpy, which sorts many
times faster than torch there; and the fake model needs no torch.

The steps, in transformers' order:

* repetition penalty, over prompt and generation: a positive logit is divided by it, a negative
  one multiplied (transformers, vLLM);
* frequency and presence penalties, over the generation alone: the logit less
  `frequency * count + presence * (count > 0)` (OpenAI, vLLM);
* biases are added to the logits (OpenAI);
* banned tokens (stop tokens, before `min_tokens`) and those that a constraint forbids cannot be
  drawn;
* temperature; below 1e-5 the largest logit wins, and the steps below do not matter;
* top-k: keeps the k likeliest tokens (of equals, those with the lower ids);
* top-p: keeps the fewest likeliest tokens whose share of those left by top-k reaches p;
* min-p: keeps tokens at least `min_p` times as likely as the likeliest.

One uniform number decides a draw: a hash of the request's seed and the number of tokens it has
generated. It goes through the inverse of the cumulative distribution over the tokens from likeliest
to least likely. So a draw depends only on its row's logits and its own request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.finite import check_finite
from sgc.runtime.engine.requests.request import SamplingParams

Floats = npt.NDArray[np.float32]
_ROWS_AT_ONCE = 16  # so that a group's arrays stay in the processor's cache


def sample(logits: Floats, draws: Sequence[Draw]) -> list[int]:
    """Draws one token per row. logits: [n_rows, vocab], left unchanged. Raises NotFinite."""
    assert logits.shape[0] == len(draws)
    adjusted = [i for i, draw in enumerate(draws) if draw.is_adjusted]
    if adjusted:
        rows = logits if len(adjusted) == len(draws) else logits[adjusted]
        check_finite(rows.max(axis=1))  # the adjustments below may hide a NaN
        logits = logits.copy()
        for i in adjusted:
            _adjust(logits[i], draws[i])
    greedy = [i for i, d in enumerate(draws) if d.params.is_greedy]
    if len(greedy) == len(draws):
        return [int(token) for token in _likeliest(logits)]
    tokens = np.empty(len(draws), np.int64)
    if greedy:
        tokens[greedy] = _likeliest(logits[greedy])
    rest = [i for i, d in enumerate(draws) if not d.params.is_greedy]
    few = {i: ids for i in rest if (ids := _few_allowed(draws[i])) is not None}
    for i, ids in few.items():
        tokens[i] = ids[_draw_group(logits[i : i + 1, ids], [draws[i]])[0]]
    rest = [i for i in rest if i not in few]
    for at in range(0, len(rest), _ROWS_AT_ONCE):
        group = rest[at : at + _ROWS_AT_ONCE]
        tokens[group] = _draw_group(logits[group], [draws[i] for i in group])
    return [int(token) for token in tokens]


def _few_allowed(draw: Draw) -> Ints | None:
    """The allowed tokens, in order, if they are few: then only these need to be sorted."""
    if draw.allowed is None:
        return None
    ids: Ints = np.flatnonzero(draw.allowed)
    return ids if 0 < 8 * len(ids) < len(draw.allowed) else None


def _likeliest(logits: Floats) -> Ints:
    tokens: Ints = logits.argmax(1)
    check_finite(logits[np.arange(len(tokens)), tokens])
    return tokens


def _adjust(row: Floats, draw: Draw) -> None:
    params, state = draw.params, draw.penalties
    if state is not None:
        if params.repetition_penalty != 1:
            factor = np.where(row > 0, 1 / params.repetition_penalty, params.repetition_penalty)
            row[state.seen] *= factor[state.seen].astype(np.float32)
        row -= params.frequency_penalty * state.counts
        row -= params.presence_penalty * (state.counts > 0)
    for token, bias in params.logit_bias:
        row[token] += bias
    if draw.banned:
        row[list(draw.banned)] = -np.inf
    if draw.allowed is not None:
        np.copyto(row, -np.inf, where=~draw.allowed)


def _draw_group(logits: Floats, draws: Sequence[Draw]) -> Ints:
    weights = _weights(logits, draws)
    sorted_weights = np.ascontiguousarray(np.sort(weights, axis=1)[:, ::-1])
    masses = np.cumsum(sorted_weights, axis=1, dtype=np.float64)
    tokens = np.empty(len(draws), np.int64)
    for i, draw in enumerate(draws):
        n_kept = _n_kept(sorted_weights[i], masses[i], draw.params)
        point = draw.point * masses[i, n_kept - 1]
        rank = min(int(np.searchsorted(masses[i], point, side="right")), n_kept - 1)
        tokens[i] = _token_of_rank(weights[i], sorted_weights[i], rank)
    return tokens


def _weights(logits: Floats, draws: Sequence[Draw]) -> Floats:
    """[n_rows, vocab], proportional to the probabilities; the likeliest token has 1."""
    temperatures = np.array([d.params.temperature for d in draws], np.float32)[:, None]
    best = logits.max(axis=1, keepdims=True)
    check_finite(best)
    weights: Floats = np.exp((logits - best) / temperatures)
    return weights


def _n_kept(weights: Floats, masses: npt.NDArray[np.float64], params: SamplingParams) -> int:
    """How many of the likeliest tokens the filters leave. weights: [vocab], descending."""
    n = len(weights)
    if 0 < params.top_k < n:
        n = params.top_k
    if params.top_p < 1:
        n = min(n, 1 + int(np.searchsorted(masses, params.top_p * masses[n - 1])))
    if params.min_p > 0:
        ascending = weights[::-1]
        n = min(n, len(weights) - int(np.searchsorted(ascending, np.float32(params.min_p))))
    return max(n, 1)


def _token_of_rank(weights: Floats, descending: Floats, rank: int) -> int:
    """The token at a rank of the sorted order; equal weights are ordered by id."""
    value = descending[rank]
    n_above = len(descending) - int(np.searchsorted(descending[::-1], value, side="right"))
    return int(np.flatnonzero(weights == value)[rank - n_above])
