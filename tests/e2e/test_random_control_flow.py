"""Random programs with control flow: compiled equals interpreted, requests and effects too.

The long version, in parts by seed:

    SEEDS=0:10000 .venv/bin/pytest -s -m slow tests/e2e/test_random_control_flow.py
"""

from __future__ import annotations

import os

import pytest
import random_control_carried as carried
import random_control_runs as runs
import random_control_sums as sums
import random_control_texts as texts
from random_control import Generator

N_PROGRAMS = 4
N_DRAWN = 300
FOUND = (13_000_019,)  # it raises where tools may begin early


def _check(tally: runs.Tally) -> None:
    share = tally.n_over_budget / tally.n_programs
    assert share < 0.6, f"{tally}"
    assert tally.n_reached > 0.5 * tally.n_arms, f"{tally}"


def test_random_programs_with_control_flow():
    _check(runs.check([*range(N_PROGRAMS), *FOUND]))


def test_every_construct_is_drawn():
    drawn = {mark.kind for seed in range(N_DRAWN) for mark in Generator(seed).program().marks}
    assert drawn == {*texts.KINDS, *sums.KINDS, *carried.KINDS}


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_random_programs_with_control_flow():
    first, last = map(int, os.environ.get("SEEDS", "0:10000").split(":"))
    tally = runs.check(range(first, last), is_shown=True)
    _check(tally)
    if tally.n_programs >= 10_000:
        missing = runs.wanted_pairs() - set(tally.pairs)
        assert not missing, f"pairs never drawn: {sorted(missing)}"
    if tally.n_programs >= 1000:
        idle = {*texts.KINDS, *sums.KINDS, *carried.KINDS} - set(tally.mattered)
        assert not idle, f"never mattered: {sorted(idle)}"
