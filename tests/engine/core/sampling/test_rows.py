"""Rows of a batch: greedy ones, biases, and that no row depends on the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine.core.sampling.reference import PARTS, Case, make_case, make_row

from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.request import SamplingParams
from sgc.runtime.engine.step.sampler import sample


@pytest.mark.sweep
@pytest.mark.parametrize("temperature", [0.0, 1e-6])
@pytest.mark.parametrize("name", PARTS)
def test_greedy_is_the_largest_of_what_penalties_and_bias_leave(
    name: str, temperature: float
) -> None:
    rng = np.random.default_rng(200 + list(PARTS).index(name))
    for _ in range(6):
        case = make_case(name, rng, make_row(rng, 5, 2000))
        case = replace(case, settings={**case.settings, "temperature": temperature})
        plain = replace(case, settings={**case.settings, "temperature": 1.0})
        assert case.sample([1, 2]) == [int(plain.scores().argmax())] * 2


def test_of_equal_logits_greedy_takes_the_lowest_id() -> None:
    rng = np.random.default_rng(7)
    for vocab in (2, 5, 16, 17, 300):
        row = np.round(rng.standard_normal(vocab)).astype(np.float32)
        lowest = int(np.flatnonzero(row == row.max())[0])
        assert Case(row, {}).sample([0]) == [lowest]
        rest = np.where(np.arange(vocab) == lowest, -np.inf, row)
        assert Case(row, {}, banned=(lowest,)).sample([0]) == [int(rest.argmax())]
        biased = Case(row, {"logit_bias": ((vocab - 1, float(row.max() - row[-1])),)})
        assert biased.sample([0]) == [lowest]


def test_a_bias_forces_forbids_and_does_not_lift_a_ban() -> None:
    row = np.random.default_rng(8).standard_normal(30).astype(np.float32)
    for temperature in (0.0, 1.0):
        forced = Case(row, {"temperature": temperature, "logit_bias": ((5, 100.0),)})
        assert set(forced.sample(range(100))) == {5}
        assert 5 not in replace(forced, banned=(5,)).sample(range(100))
        best = int(row.argmax())
        without = Case(row, {"temperature": temperature, "logit_bias": ((best, -100.0),)})
        assert best not in without.sample(range(100))


def test_a_bias_is_of_its_own_row_and_leaves_the_logits_alone() -> None:
    rows = np.random.default_rng(9).standard_normal((6, 30)).astype(np.float32)
    before = rows.copy()
    plain = [Draw(SamplingParams(float(i % 2), seed=i)) for i in range(6)]
    alone = sample(rows, plain)
    some = list(plain)
    some[2] = Draw(SamplingParams(0.0, logit_bias=((7, 100.0),)))
    some[3] = Draw(SamplingParams(1.0, logit_bias=((9, 100.0),)))
    assert sample(rows, some) == [*alone[:2], 7, 9, *alone[4:]]
    assert np.array_equal(rows, before)


def test_a_draw_is_the_same_in_whatever_batch_it_is() -> None:
    """Alone, among others, in another order: with every parameter, greedy rows among them."""
    rng = np.random.default_rng(10)
    names = [*PARTS] * 3
    vocab = 401  # odd, so that rows begin at every alignment
    rows = (3 * rng.standard_normal((len(names), vocab))).astype(np.float32)
    cases = [make_case(name, rng, row) for name, row in zip(names, rows, strict=True)]
    cases[::5] = [replace(c, settings={**c.settings, "temperature": 0.0}) for c in cases[::5]]
    draws = [case.draw(seed) for seed, case in enumerate(cases)]
    alone = [case.sample([seed])[0] for seed, case in enumerate(cases)]
    assert sample(rows, draws) == alone
    for _ in range(5):
        some = rng.permutation(len(names))[: int(rng.integers(1, len(names)))]
        assert sample(rows[some], [draws[i] for i in some]) == [alone[i] for i in some]
