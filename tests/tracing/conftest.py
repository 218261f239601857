"""What is refused without live objects is tested without them; `live/` tests these."""

from __future__ import annotations

import pytest
from traced_at_once import without_live


@pytest.fixture(autouse=True)
def _without_live(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.parent.name != "live":
        without_live(monkeypatch)
