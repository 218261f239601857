"""An engine on the fake model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sgc.runtime.engine.launch import EmbeddedEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    """An engine on the fake model whose books are checked after every step."""
    arguments = ["--check", "--max-context", "4096", "--pool-tokens", "20000"]
    with EmbeddedEngine("fake", arguments) as running:
        yield running
