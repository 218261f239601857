"""A flood of requests with one hot prefix, and a few cold ones, on a virtual clock."""

from __future__ import annotations

from functools import cache

import pytest
import virtual_clock as vc

from sgc.runtime.engine.scheduling import turns

# One hot prefix, and several of which the pool holds a part; arrivals somewhat above capacity.
FLOODS = {
    "one": {"flood": {"n": 900, "rate": 30, "n_groups": 1}, "pool": 16384, "max_running": 32},
    "eight": {"flood": {"n": 900, "rate": 20, "n_groups": 8}, "pool": 4096, "max_running": 16},
}


@cache
def outcome(name: str, policy: str, grace: int = turns.GRACE) -> vc.Run:
    case = dict(FLOODS[name])
    arrivals = vc.flood(1, **case.pop("flood"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "GRACE", grace)
        return vc.run(arrivals, grace=grace, policy=policy, **case)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.parametrize(
    "policy",
    ["lpm", "fcfs", *(pytest.param(each, marks=pytest.mark.slow) for each in ("dfs", "random"))],
)
def test_no_request_waits_beyond_the_bound(name: str, policy: str) -> None:
    run = outcome(name, policy)
    assert len(run.passed) == FLOODS[name]["flood"]["n"]
    assert all(waited <= allowed for waited, allowed in run.passed)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FLOODS)
def test_cold_requests_wait_at_most_three_times_as_long_as_first_come_first_served(name) -> None:
    ours, fcfs = outcome(name, "lpm"), outcome(name, "fcfs")
    assert ours.percentile_s("cold", 99) <= 3 * fcfs.percentile_s("cold", 99)


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOODS)
def test_fairness_costs_less_than_a_twentieth_of_the_throughput(name) -> None:
    pure = outcome(name, "lpm", grace=10**9)
    assert outcome(name, "lpm").seconds <= pure.seconds / 0.95


def test_without_the_bound_cold_requests_would_starve() -> None:
    """That the flood is one: else the tests above say nothing."""
    pure, ours = outcome("one", "lpm", grace=10**9), outcome("one", "lpm")
    assert pure.percentile_s("cold", 99) > 1.5 * ours.percentile_s("cold", 99)
    assert any(waited > 0.95 * allowed for waited, allowed in ours.passed)
