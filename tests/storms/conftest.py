"""One server for all short storms: starting it takes longer than they do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from storms.harness import ARGUMENTS, Server

TOKENS = ("token-of-the-harness", "token-of-another")


@pytest.fixture(scope="session")
def storm_server() -> Iterator[Server]:
    with Server("fake", (*ARGUMENTS, "--check"), TOKENS) as server:
        yield server
