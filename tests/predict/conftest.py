"""Fixtures of the scripted providers, and a model opened once."""

from __future__ import annotations

import pytest
from providers.conftest import ask, serve  # noqa: F401  (fixtures)

from sgc.predict.targets import EngineTarget


@pytest.fixture(scope="session")
def tiny() -> EngineTarget:
    """The model that ships, without its weights."""
    return EngineTarget()
