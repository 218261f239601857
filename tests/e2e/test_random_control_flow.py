"""Random programs with control flow: compiled equals interpreted, requests and effects too.

The long version, in parts by seed:

    SEEDS=0:10000 .venv/bin/pytest -s -m slow tests/e2e/test_random_control_flow.py
"""

from __future__ import annotations

import os

import pytest
import random_control_runs as runs

N_PROGRAMS = 8


def _check(tally: runs.Tally) -> None:
    share = tally.n_over_budget / tally.n_programs
    assert share < 0.6, f"{tally}"
    assert tally.n_reached > 0.5 * tally.n_arms, f"{tally}"


def test_random_programs_with_control_flow():
    _check(runs.check(range(N_PROGRAMS)))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_random_programs_with_control_flow():
    first, last = map(int, os.environ.get("SEEDS", "0:10000").split(":"))
    tally = runs.check(range(first, last), is_shown=True)
    _check(tally)
    if tally.n_programs >= 1000:
        missing = runs.wanted_pairs() - set(tally.pairs)
        assert not missing, f"pairs never drawn: {sorted(missing)}"
