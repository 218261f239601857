"""Draws are as frequent as transformers says, and another order of the steps would be seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from engine.core.sampling.reference import (
    LEAST_P,
    N_DRAWS,
    PARTS,
    Case,
    Probabilities,
    Settings,
    is_undecided,
    make_case,
)
from transformers import (
    MinPLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.request import SamplingParams
from sgc.runtime.engine.step.sampler import sample


def p_value(statistic: float, degrees: int) -> float:
    """Of a chi-square statistic, by Wilson and Hilferty's normal approximation."""
    if degrees == 0:
        return 1.0
    spread = 2 / (9 * degrees)
    z = ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


def merged(expected: Probabilities, counts: Probabilities) -> list[tuple[float, float]]:
    """(expected, counted) of bins of 5 expected draws or more, unlikely tokens put together."""
    bins = [(0.0, 0.0)]
    for token in np.argsort(expected):
        if bins[-1][0] >= 5:
            bins.append((0.0, 0.0))
        bins[-1] = (bins[-1][0] + expected[token], bins[-1][1] + counts[token])
    if len(bins) > 1 and bins[-1][0] < 5:
        last = bins.pop()
        bins[-1] = (bins[-1][0] + last[0], bins[-1][1] + last[1])
    return bins


def fit(drawn: Sequence[int], p: Probabilities) -> float:
    """The p-value of the draws under `p`; 0 if one of them cannot be."""
    counts = np.bincount(drawn, minlength=len(p)).astype(np.float64)
    if counts[p == 0].any():
        return 0.0
    bins = merged(p * len(drawn), counts)
    return p_value(sum((n - e) ** 2 / e for e, n in bins), len(bins) - 1)


def spread_case(name: str, rng: np.random.Generator) -> Case:
    """Over few tokens, of which several are likely, so that a wrong share would show."""
    for _ in range(1000):
        row = (1.2 * rng.standard_normal(int(rng.integers(8, 21)))).astype(np.float32)
        case = make_case(name, rng, row)
        if (case.probabilities() > 0.02).sum() >= 4 and not is_undecided(case):
            return case
    raise AssertionError("no such case")


@pytest.mark.sweep
@pytest.mark.parametrize("name", PARTS)
def test_draws_are_as_frequent_as_transformers_says(name: str) -> None:
    case = spread_case(name, np.random.default_rng(100 + list(PARTS).index(name)))
    drawn = case.sample(range(N_DRAWS))
    assert fit(drawn, case.probabilities()) > LEAST_P, case.settings


def test_draws_of_one_seed_along_a_text_are_as_frequent() -> None:
    """The other coordinate of a draw's uniform number."""
    row = np.random.default_rng(3).standard_normal(12).astype(np.float32)
    draws = [Draw(SamplingParams(0.9, top_p=0.9, seed=11), n) for n in range(N_DRAWS)]
    drawn = sample(np.repeat(row[None], N_DRAWS, 0), draws)
    case = Case(row, {"temperature": 0.9, "top_p": 0.9}, (0,))
    assert fit(drawn, case.probabilities()) > LEAST_P


WRONG_ORDERS: dict[str, tuple[Settings, Callable[[torch.Tensor], torch.Tensor]]] = {
    "min-p before temperature": (
        {"temperature": 2.0, "min_p": 0.25},
        lambda x: MinPLogitsWarper(0.25)(None, x) / 2,
    ),
    "top-p before temperature": (
        {"temperature": 2.0, "top_p": 0.8},
        lambda x: TopPLogitsWarper(0.8)(None, x) / 2,
    ),
    "top-p before top-k": (
        {"temperature": 1.0, "top_k": 6, "top_p": 0.8},
        lambda x: TopKLogitsWarper(6)(None, TopPLogitsWarper(0.8)(None, x)),
    ),
    "bias after temperature": (
        {"temperature": 2.0, "logit_bias": ((0, 1.5),)},
        lambda x: x / 2 + torch.tensor([1.5] + [0.0] * (x.shape[1] - 1)),
    ),
    "penalty after temperature": (
        {"temperature": 2.0, "presence_penalty": 1.5},
        lambda x: x / 2 - torch.tensor([1.5] + [0.0] * (x.shape[1] - 1)),
    ),
    "bias before repetition penalty": (
        {"temperature": 1.0, "repetition_penalty": 3.0, "logit_bias": ((0, 1.5),)},
        lambda x: torch.cat([(x[:, :1] + 1.5) / 3, x[:, 1:]], 1),
    ),
    "presence penalty before repetition penalty": (
        {"temperature": 1.0, "repetition_penalty": 3.0, "presence_penalty": 1.0},
        lambda x: torch.cat([(x[:, :1] - 1.0) / 3, x[:, 1:]], 1),
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG_ORDERS)
def test_another_order_of_the_steps_would_be_seen(name: str) -> None:
    settings, wrong = WRONG_ORDERS[name]
    row = np.linspace(2.0, -1.0, 12).astype(np.float32)
    case = Case(row, settings, (0,), (0,))
    drawn = case.sample(range(N_DRAWS))
    assert fit(drawn, case.probabilities()) > LEAST_P
    other: Probabilities = wrong(torch.from_numpy(row)[None].double()).softmax(-1)[0].numpy()
    assert fit(drawn, other) < LEAST_P


def test_the_p_values_are_right() -> None:
    """Against tables: the points that a chi-square passes once in 20, 100 and 10,000 times."""
    for degrees, points in {3: (7.815, 11.345, 21.108), 10: (18.307, 23.209, 35.564)}.items():
        for point, p in zip(points, (0.05, 0.01, 1e-4), strict=True):
            assert p_value(point, degrees) == pytest.approx(p, rel=0.5)
