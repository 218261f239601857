"""The sampler against transformers' logits processors: each parameter alone, and together.

Which tokens can come, for hundreds of rows of logits; how often each comes, by chi-square; and
what whole generations are, token by token. Seeds are fixed, so that nothing here is a matter of
luck. Frequency and presence penalties have no processor there: their formula is OpenAI's.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from engine.core.sampling.reference import (
    MAX_UNIFORM,
    N_ROWS,
    PARTS,
    Case,
    Probabilities,
    by_rank,
    is_undecided,
    make_case,
    make_row,
    nudged,
    seed_of,
)


def assert_support(case: Case, allowed: npt.NDArray[np.bool_], p: Probabilities) -> None:
    """Draws at the middle of tokens' shares of [0, 1), at both ends, and at random points."""
    kept = np.array([token for token in by_rank(p) if allowed[token]])
    shares = p[kept] / p[kept].sum()
    middles = np.cumsum(shares) - shares / 2
    # A share below this is lost in the rounding of the sum, here as there.
    tried = np.flatnonzero(shares > 1e-5)
    if len(tried) > 24:
        tried = np.concatenate([tried[:8], tried[len(tried) // 2 :][:8], tried[-8:]])
    points = [0.0, MAX_UNIFORM, *middles[tried], *np.linspace(0.01, 0.99, 9)]
    drawn = case.sample([seed_of(float(point), len(case.generated)) for point in points])
    assert set(drawn) <= set(kept.tolist())
    assert drawn[0] == kept[0], "the likeliest comes first"
    assert drawn[1] == kept[-1] or p[kept[-1]] < 1e-12, "the least likely that is kept comes last"
    assert set(kept[tried].tolist()) <= set(drawn)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PARTS)
def test_the_tokens_that_can_come_are_those_that_transformers_leaves(name: str) -> None:
    rng = np.random.default_rng(list(PARTS).index(name))
    n_undecided = 0
    for _ in range(N_ROWS):
        case = make_case(name, rng, make_row(rng, 5, 2000))
        if is_undecided(case):
            n_undecided += 1
            continue
        scores, p = case.scores()[0], case.probabilities()
        assert_support(case, (scores > -math.inf).numpy(), p)
    assert n_undecided <= 1


def keep_by_hand(case: Case) -> set[int]:
    """What the filters keep where logits are equal: of equal tokens, those of lower ids."""
    asked, row = case.settings, case.row.astype(np.float64) / case.settings["temperature"]
    kept = by_rank(row).tolist()
    kept = kept[: asked["top_k"]] if asked.get("top_k", -1) > 0 else kept
    weights = [math.exp(row[token] - row[kept[0]]) for token in kept]
    limit, before, n = asked.get("top_p", 1.0) * math.fsum(weights), 0.0, 0
    while n < len(kept) and before < limit:
        before += weights[n]
        n += 1
    least = asked.get("min_p", 0.0)
    return {t for t, w in zip(kept[:n], weights[:n], strict=True) if w >= least}


@pytest.mark.parametrize("name", ["top_k", "top_p", "min_p", "top_k, top_p", "top_k, top_p, min_p"])
def test_of_equal_tokens_the_lower_ids_are_kept(name: str) -> None:
    """transformers keeps more of them (top-k) or any of them (top-p); their logits are the same."""
    rng = np.random.default_rng(50 + list(PARTS).index(name))
    n_tried = 0
    for _ in range(24):
        row = np.round(2 * make_row(rng, 5, 60)) / 2
        case = make_case(name, rng, row.astype(np.float32))
        ours = keep_by_hand(case)
        if any(keep_by_hand(nudged(case, f)) != ours for f in (1 - 1e-5, 1 + 1e-5)):
            continue  # hangs on rounding
        n_tried += 1
        allowed = np.isin(np.arange(len(row)), list(ours))
        weights = np.exp((row - row.max()) / case.settings["temperature"], dtype=np.float64)
        assert_support(case, allowed, weights / weights.sum())
        theirs = np.flatnonzero(case.probabilities() > 0)
        if "top_k" not in name:
            assert sorted(row[list(ours)]) == sorted(row[theirs])
        elif name == "top_k":
            assert ours <= set(theirs.tolist())
            assert set(row[theirs]) == set(row[list(ours)])
    assert n_tried >= 12
