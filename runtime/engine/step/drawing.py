"""Draws the tokens of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sgc.runtime.engine.model.forward import Logits
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.request import Work
from sgc.runtime.engine.step.batch import StepBatch
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.generation import draw_of
from sgc.runtime.engine.step.masks import Allowed


def draw_tokens(
    batch: StepBatch, logits: Logits, allowed: Mapping[Work, Allowed], faults: Faults
) -> dict[Work, list[int] | None]:
    """The tokens of each sampled request; None if its constraint allows none.

    There is one more than guesses that are right: the draw after a right guess is the one that the
    next step would have made.
    """
    dead = {work for work, mask in allowed.items() if not mask.any()}
    draws = [
        draw_of(work, None if work in dead else allowed.get(work)) for work, _ in batch.sampled
    ]
    firsts = _draw(batch.sampled, logits, draws, faults)
    drawn = {work: [token] for work, token in firsts.items()}
    if batch.guesses:
        _draw_after_guesses(batch, logits, drawn)
    return {**drawn, **dict.fromkeys(dead)}


def _draw_after_guesses(batch: StepBatch, logits: Logits, drawn: Mapping[Work, list[int]]) -> None:
    """Adds to the tokens drawn, while the guesses are right. Where a draw fails, its request keeps
    the tokens before, and the next step fails as it would have without guesses."""
    going = [(work, at) for work, at in batch.sampled if work in batch.guesses and work in drawn]
    n = 0  # guesses that are right
    while True:
        going = [
            (work, at)
            for work, at in going
            if n < len(batch.guesses[work])
            and len(drawn[work]) == n + 1
            and drawn[work][n] == batch.guesses[work][n]
        ]
        if not going:
            return
        n += 1
        draws = [draw_of(work, None, n) for work, _ in going]
        rows = [(work, at + n) for work, at in going]
        for work, token in _draw(rows, logits, draws, Faults()).items():
            drawn[work].append(token)


def _draw(
    sampled: Sequence[tuple[Work, int]], logits: Logits, draws: Sequence[Draw], faults: Faults
) -> dict[Work, int]:
    """A token for each request, from its row of the logits."""
    if not sampled:  # as in a step of a prompt's middle
        return {}
    works, at = [work for work, _ in sampled], [at for _, at in sampled]
    try:
        return dict(zip(works, logits.draw(at, draws), strict=True))
    except Exception:  # rows are drawn one by one to find the faulty ones
        return _one_by_one(sampled, logits, draws, faults)


def _one_by_one(
    sampled: Sequence[tuple[Work, int]], logits: Logits, draws: Sequence[Draw], faults: Faults
) -> dict[Work, int]:
    tokens: dict[Work, int] = {}
    for (work, at), draw in zip(sampled, draws, strict=True):
        try:
            (tokens[work],) = logits.draw([at], [draw])
        except Exception as error:
            (row,) = logits.rows([at])
            is_of_the_request = isinstance(error, NotFinite) and np.isfinite(row.max())
            what = "its penalties and biases leave no token that can be drawn"
            faults.note(work, ValueError(what) if is_of_the_request else error)
    return tokens
