"""What is refused without live objects is tested without them; `test_live*.py` test these."""

from __future__ import annotations

import pytest
from traced_at_once import without_live


@pytest.fixture(autouse=True)
def _without_live(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.module.__name__.rpartition(".")[2].startswith("test_live"):
        without_live(monkeypatch)
