"""Programs that somebody might have made to do harm cost little: no second, no 256 MB, no crash.

The long version, in parts by seed (20,000 files):

    SEEDS=0:20000 .venv/bin/pytest -s -m slow tests/ir/test_file_mutants.py
"""

from __future__ import annotations

import os
from pathlib import Path

import hostile_files as hostile
import pytest

MAX_S, MAX_BYTES = 1.0, 256 * 2**20


def check(tally: hostile.Tally) -> None:
    assert tally.worst_s[0] < MAX_S, tally
    assert tally.worst_bytes[0] < MAX_BYTES, tally
    assert tally.n_loaded > tally.n_files / 20, tally


def test_mutants_cost_little(tmp_path: Path) -> None:
    hostile.try_files([1], tmp_path, hostile.Tally())  # what is loaded lazily
    tally = hostile.Tally()
    hostile.try_files((seed for seed in range(2, 82) if seed % 25), tmp_path, tally)
    check(tally)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_mutants_cost_little(tmp_path: Path) -> None:
    first, last = map(int, os.environ.get("SEEDS", "0:20000").split(":"))
    hostile.try_files([1], tmp_path, hostile.Tally())
    tally = hostile.Tally()
    hostile.try_files(range(first, last), tmp_path, tally)
    print(tally)
    check(tally)
