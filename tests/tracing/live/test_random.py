"""Random programs of objects and rows, traced with live objects, are as interpreted.

`SEEDS=0:600 pytest -s -m slow tests/tracing/live/test_random.py` runs others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import random_objects
import random_rows
from traced_at_once import live_at_once, random_outcomes

KINDS = pytest.mark.parametrize("made", [random_objects, random_rows], ids=["objects", "rows"])


@pytest.mark.full_budget
@pytest.mark.parametrize(
    ("made", "seeds"),
    [(random_objects, range(9, 10)), (random_rows, range(2))],  # the first holds calls
    ids=["objects", "rows"],
)
def test_random_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any, seeds: range
) -> None:
    found = random_outcomes(seeds, tmp_path, monkeypatch, made, live_at_once)
    assert found["whole"] == len(seeds)


@pytest.mark.slow
@pytest.mark.full_budget
@pytest.mark.timeout(0)
@KINDS
def test_many_random_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    first, last = map(int, os.environ.get("SEEDS", "0:40").split(":"))
    found = random_outcomes(range(first, last), tmp_path, monkeypatch, made, live_at_once)
    print(f"{made.__name__}: {dict(found)}")
    assert found["refused"] <= 0.02 * found.total()
