"""Draws the tokens of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.request import Work
from sgc.runtime.engine.step.batch import StepBatch, rows_at
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.generation import draw_of
from sgc.runtime.engine.step.masks import Allowed
from sgc.runtime.engine.step.sampler import Draw, sample

Floats = npt.NDArray[np.float32]


def draw_tokens(
    batch: StepBatch, logits: Floats, allowed: Mapping[Work, Allowed], faults: Faults
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


def _draw_after_guesses(batch: StepBatch, logits: Floats, drawn: Mapping[Work, list[int]]) -> None:
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
    sampled: Sequence[tuple[Work, int]], logits: Floats, draws: Sequence[Draw], faults: Faults
) -> dict[Work, int]:
    """A token for each request, from its row of the logits."""
    works = [work for work, _ in sampled]
    rows = rows_at(logits, [at for _, at in sampled])
    try:
        return dict(zip(works, sample(rows, draws), strict=True))
    except Exception:  # rows are drawn one by one to find the faulty ones
        return _one_by_one(works, rows, draws, faults)


def _one_by_one(
    works: Sequence[Work], rows: Floats, draws: Sequence[Draw], faults: Faults
) -> dict[Work, int]:
    tokens: dict[Work, int] = {}
    for i, (work, draw) in enumerate(zip(works, draws, strict=True)):
        try:
            (tokens[work],) = sample(rows[i : i + 1], [draw])
        except Exception as error:
            is_of_the_request = isinstance(error, NotFinite) and np.isfinite(rows[i].max())
            what = "its penalties and biases leave no token that can be drawn"
            faults.note(work, ValueError(what) if is_of_the_request else error)
    return tokens
