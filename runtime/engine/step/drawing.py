"""Draws the tokens of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.request import Work
from sgc.runtime.engine.step.batch import StepBatch, sampled_rows
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.generation import draw_of
from sgc.runtime.engine.step.masks import Allowed
from sgc.runtime.engine.step.sampler import Draw, sample

Floats = npt.NDArray[np.float32]


def draw_tokens(
    batch: StepBatch, logits: Floats, allowed: Mapping[Work, Allowed], faults: Faults
) -> dict[Work, int | None]:
    """A token for each sampled request; None if its constraint allows none."""
    dead = {work for work, mask in allowed.items() if not mask.any()}
    works = [work for work, _ in batch.sampled]
    draws = [draw_of(work, None if work in dead else allowed.get(work)) for work in works]
    rows = sampled_rows(batch, logits)
    try:
        tokens = dict(zip(works, sample(rows, draws), strict=True))
    except Exception:  # rows are drawn one by one to find the faulty ones
        tokens = _one_by_one(works, rows, draws, faults)
    return {**tokens, **dict.fromkeys(dead)}


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
