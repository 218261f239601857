"""The sampler against transformers' logits processors, and its draws against chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from sgc.runtime.engine.requests.draws import Draw, uniform
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import SamplingParams
from sgc.runtime.engine.step.sampler import sample

VOCAB = 40
LOGITS = (3 * np.random.default_rng(0).standard_normal((1, VOCAB))).astype(np.float32)


def seen_in(params: SamplingParams, n: int = 3000) -> np.ndarray:
    """How often each token is drawn."""
    counts = np.zeros(VOCAB)
    for at in range(0, n, 100):
        draws = [Draw(params, i) for i in range(at, at + 100)]
        np.add.at(counts, sample(np.repeat(LOGITS, 100, 0), draws), 1)
    return counts


def warped(*warpers) -> np.ndarray:
    scores = torch.from_numpy(LOGITS.copy())
    for warper in warpers:
        scores = warper(None, scores)
    return scores.softmax(-1)[0].double().numpy()


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Per degree of freedom; about 1 if the counts come from the probabilities."""
    expected = probabilities * counts.sum()
    likely = expected >= 5
    assert counts[probabilities == 0].sum() == 0, "a token was drawn that cannot be"
    terms = (counts[likely] - expected[likely]) ** 2 / expected[likely]
    return float(terms.sum() / max(1, likely.sum() - 1))


@pytest.mark.parametrize(
    ("params", "warpers"),
    [
        (SamplingParams(1.0), [TemperatureLogitsWarper(1.0)]),
        (SamplingParams(0.6), [TemperatureLogitsWarper(0.6)]),
        (SamplingParams(2.5, top_k=7), [TemperatureLogitsWarper(2.5), TopKLogitsWarper(7)]),
        (SamplingParams(2.5, top_p=0.7), [TemperatureLogitsWarper(2.5), TopPLogitsWarper(0.7)]),
        (SamplingParams(2.5, min_p=0.2), [TemperatureLogitsWarper(2.5), MinPLogitsWarper(0.2)]),
        (
            SamplingParams(2.0, top_k=12, top_p=0.8, min_p=0.05),
            [
                TemperatureLogitsWarper(2.0),
                TopKLogitsWarper(12),
                TopPLogitsWarper(0.8),
                MinPLogitsWarper(0.05),
            ],
        ),
    ],
)
def test_draws_follow_what_transformers_would_draw_from(params, warpers) -> None:
    probabilities = warped(*warpers)
    counts = seen_in(params)
    assert chi_square(counts, probabilities) < 2
    off = np.roll(probabilities, 1)
    off[counts > 0] = np.maximum(off[counts > 0], 1e-3)
    assert chi_square(counts, off / off.sum()) > 2, "the statistic cannot tell"


@pytest.mark.parametrize("kept", [1, 3, 40])
def test_the_filters_keep_the_same_tokens(kept) -> None:
    """Every uniform number: the tokens that can come are the ones transformers leaves."""
    for params, warper in (
        (SamplingParams(1.0, top_k=kept), TopKLogitsWarper(kept)),
        (SamplingParams(1.0, top_p=kept / 41), TopPLogitsWarper(kept / 41)),
        (SamplingParams(1.0, min_p=1 / kept), MinPLogitsWarper(1 / kept)),
    ):
        allowed = set(np.flatnonzero(warped(warper)))
        drawn = set(np.flatnonzero(seen_in(params)))
        assert drawn <= allowed
        likely = {i for i in allowed if warped(warper)[i] > 0.01}
        assert likely <= drawn


def test_repetition_penalty_is_transformers_own() -> None:
    prompt = np.array([3, 3, 8, int(LOGITS.argmax())])
    state = Penalties(prompt, VOCAB)
    state.add(11)
    ids = torch.tensor([[*prompt.tolist(), 11]])
    theirs = RepetitionPenaltyLogitsProcessor(1.7)(ids, torch.from_numpy(LOGITS.copy()))
    draw = Draw(SamplingParams(repetition_penalty=1.7), 1, state)
    assert sample(LOGITS, [draw]) == [int(theirs.argmax())]
    counts = np.zeros(VOCAB)
    for i in range(2000):
        params = SamplingParams(1.0, repetition_penalty=1.7)
        counts[sample(LOGITS, [Draw(params, i, state)])[0]] += 1
    assert chi_square(counts, theirs.softmax(-1)[0].double().numpy()) < 2


def test_frequency_and_presence_count_only_what_was_generated() -> None:
    logits = np.array([[0.0, 1.0, 2.0, 2.5]], np.float32)
    state = Penalties(np.array([3, 3, 3]), 4)
    frequency = Draw(SamplingParams(frequency_penalty=0.4), 0, state)
    presence = Draw(SamplingParams(presence_penalty=0.8), 0, state)
    assert sample(np.repeat(logits, 2, 0), [frequency, presence]) == [3, 3]
    state.add(3)
    assert sample(np.repeat(logits, 2, 0), [frequency, presence]) == [3, 2]
    state.add(3)
    assert sample(logits, [frequency]) == [2]
    assert logits[0, 3] == 2.5, "the logits are the caller's"


def test_a_draw_does_not_depend_on_its_batch() -> None:
    rng = np.random.default_rng(2)
    logits = rng.standard_normal((70, VOCAB)).astype(np.float32)
    draws = [Draw(SamplingParams(float(i % 3), top_p=0.9, seed=i), i) for i in range(70)]
    together = sample(logits, draws)
    assert together == [sample(logits[i : i + 1], [draws[i]])[0] for i in range(70)]
    assert together[::-1] == sample(logits[::-1], draws[::-1])


def test_banned_tokens_are_never_drawn() -> None:
    best = int(LOGITS.argmax())
    for temperature in (0.0, 1.0):
        draws = [Draw(SamplingParams(temperature), i, banned=(best,)) for i in range(200)]
        assert best not in sample(np.repeat(LOGITS, 200, 0), draws)


def test_equal_logits_are_all_drawn_and_greedy_takes_the_first() -> None:
    flat = np.zeros((1, 8), np.float32)
    assert sample(flat, [Draw(SamplingParams())]) == [0]
    drawn = {sample(flat, [Draw(SamplingParams(1.0), i)])[0] for i in range(200)}
    assert drawn == set(range(8))
    kept = {sample(flat, [Draw(SamplingParams(1.0, top_k=3), i)])[0] for i in range(200)}
    assert kept == {0, 1, 2}


def test_uniform_numbers_are_uniform_and_apart() -> None:
    numbers = np.array([uniform(seed, n) for seed in range(50) for n in range(200)])
    assert len(np.unique(numbers)) == 10000
    counts, _ = np.histogram(numbers, 100, (0, 1))
    assert ((counts - 100) ** 2 / 100).sum() / 99 < 1.5
    pairs = np.corrcoef(numbers[:-1], numbers[1:])[0, 1]
    assert abs(pairs) < 0.05
    assert uniform(2**64 - 1, 0) != uniform(0, 0)


def test_logits_that_are_not_numbers_are_an_error() -> None:
    bad = LOGITS.copy()
    bad[0, 3] = np.nan
    for temperature in (0.0, 1.0):
        with pytest.raises(FloatingPointError, match="not finite"):
            sample(bad, [Draw(SamplingParams(temperature))])
