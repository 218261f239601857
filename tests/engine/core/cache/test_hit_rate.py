"""The hit rate against the best there can be, counted from the requests by another program."""

from __future__ import annotations

from functools import cache

import hit_rate
import numpy as np
import pytest
from offline import optimum
from workloads import SHAPES

KNOWN_AT_ONCE = ("few_shot", "few_shot_select", "multi_level", "retrieval")
SMALL = {"n": 24, "scale": 0.15}


@cache
def rate(shape: str, policy: str, pool: float, width: int | None) -> hit_rate.Rate:
    return hit_rate.measure(shape, 0, policy=policy, pool=pool, width=width, **SMALL, least=3)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
def test_the_engine_counts_what_the_requests_say(shape: str) -> None:
    """With room for all, in the order of arrival: not one position more or less."""
    found = rate(shape, "fcfs", 4.0, None)
    assert found.cached_tokens == found.best.cached_tokens


@pytest.mark.parametrize("shape", KNOWN_AT_ONCE)
@pytest.mark.parametrize("pool", [0.05, 0.2])
def test_a_batch_known_in_advance_reaches_the_optimum(shape: str, pool: float) -> None:
    """SGLang paper, theorem 3.1; here in a pool of a few of the longest sequences."""
    found = rate(shape, "lpm", pool, None)
    assert found.cached_tokens == found.best.cached_tokens


@pytest.mark.slow
def test_online_at_least_the_papers_96_percent_on_average() -> None:
    shares = [rate(shape, "lpm", 0.1, 8).share for shape in SHAPES]
    assert np.mean(shares) >= 0.96
    fcfs = [rate(shape, "fcfs", 0.1, 8).share for shape in SHAPES]
    assert np.mean(fcfs) < np.mean(shares)


def test_the_optimum_of_a_few_requests() -> None:
    requests = [
        ([1, 2, 3, 4], [5, 6], True),  # computes 4; 5 is cached then, 6 was never fed
        ([1, 2, 3, 4], [5, 6], True),  # its last position again
        ([1, 2, 3, 4, 5, 6, 7], [], False),  # 6 and 7
        ([1, 2, 9], [], True),  # 9
        ([1, 2, 3, 4, 5], [], True),  # 5 was generated: its last position again
    ]
    best = optimum(requests)
    assert best.prompt_tokens == 23
    assert best.cached_tokens == 23 - (4 + 1 + 2 + 1 + 1)
