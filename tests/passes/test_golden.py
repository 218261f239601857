"""Each pass on small programs: what it makes of them, and what it leaves alone."""

from __future__ import annotations

import pytest
from pass_cases import cases, check

CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    check(CASES[name])
