"""A batch outlives its client, its server and the step process, with the same results."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from storms.kills import compared, kill_storm, problems


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_batch_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    found = kill_storm(tmp_path, n_kills=16, n_rows=120, span_s=2.5)
    assert not problems(found)
    assert found["rows"]["equal"] >= 120


def test_what_became_of_rows_is_seen() -> None:
    wanted = [{"key": i, "return": str(i)} for i in range(20)]
    found = [*wanted[2:], wanted[5], {"key": 99}]
    random.Random(1).shuffle(found)
    found[found.index(wanted[7])] = {"key": 7, "error": {}}
    seen = sorted(compared(wanted, found))
    assert seen == sorted(["lost"] * 2 + ["doubled"] + ["changed"] + ["unknown"] + ["equal"] * 16)
