"""The bound of waiting: within 2 a + GRACE admissions, whoever chooses, whatever is cancelled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.engine.scheduling.turns import GRACE, Turns


class Crowd:
    """Those who wait, and for each how many had been admitted and who waited when it came."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.waiting: list[tuple[int, int, int]] = []  # group, admissions before, allowed
        self.n_admitted = 0

    def arrive(self, n: int) -> None:
        groups = [self.turns.join() for _ in range(n)]
        self.turns.close()
        allowed = 2 * self.turns.n_waiting + GRACE
        self.waiting += [(group, self.n_admitted, allowed) for group in groups]

    def admit(self, choose) -> None:
        """choose: of those that may be admitted, the index of one."""
        due = self.turns.due()
        may = [w for w in self.waiting if due is None or w[0] <= due]
        assert may, "somebody is due, but nobody may be admitted"
        one = may[choose(len(may))]
        self.waiting.remove(one)
        self.turns.admit(one[0])
        self.n_admitted += 1
        self.turns.check()
        assert self.n_admitted - one[1] <= one[2], "it waited longer than the bound"

    def cancel(self, index: int) -> None:
        group, _, _ = self.waiting.pop(index % len(self.waiting))
        self.turns.cancel(group)
        self.turns.check()


@examples(60)
@given(seed=st.integers(0, 10**6), unfair=st.sampled_from(["last", "first", "any"]))
def test_nobody_waits_longer_than_the_bound(seed: int, unfair: str) -> None:
    """Also with a chooser that always takes the latest."""
    rng, crowd = np.random.default_rng(seed), Crowd()
    choose = {
        "last": lambda n: n - 1,
        "first": lambda n: 0,
        "any": lambda n: int(rng.integers(n)),
    }[unfair]
    for _ in range(300):
        crowd.arrive(int(rng.integers(0, 4)))
        for _ in range(int(rng.integers(0, 4))):
            if crowd.waiting:
                crowd.admit(choose)
        if crowd.waiting and rng.random() < 0.1:
            crowd.cancel(int(rng.integers(100)))
    while crowd.waiting:
        crowd.admit(choose)


def test_the_bound_is_reached() -> None:
    """One old request, and a chooser that takes the newest for as long as it may."""
    crowd = Crowd()
    crowd.arrive(1)
    for n_passed in range(1 + GRACE):
        assert crowd.turns.due() is None, n_passed
        crowd.arrive(1)
        crowd.admit(lambda n: n - 1)
    assert crowd.turns.due() == 0


def test_those_that_come_together_may_pass_each_other() -> None:
    crowd = Crowd()
    crowd.arrive(500)
    for _ in range(499):
        crowd.admit(lambda n: n - 1)
        assert crowd.turns.due() is None


def test_groups_that_are_gone_are_forgotten() -> None:
    turns = Turns()
    for _ in range(5000):
        group = turns.join()
        turns.close()
        turns.admit(group)
    assert len(turns._slack) < 200


@pytest.mark.parametrize("n", [1, 2, 300])
def test_a_group_that_is_cancelled_in_whole_holds_nobody_up(n: int) -> None:
    crowd = Crowd()
    crowd.arrive(n)
    while crowd.waiting:
        crowd.cancel(0)
    crowd.arrive(1)
    for _ in range(GRACE):
        crowd.arrive(1)
        crowd.admit(lambda n: n - 1)
    assert crowd.turns.due() is None
