"""Other packages' quickstarts run on the server: `make test-clients` makes their environment.

Their versions are in `quickstarts/requirements.txt`; they would not fit into the environment of the
other tests, and these are skipped without SGC_CLIENTS_PYTHON, a Python that has them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sgc.runtime.engine.launch import EmbeddedEngine

PYTHON = os.environ.get("SGC_CLIENTS_PYTHON")
QUICKSTARTS = Path(__file__).with_name("quickstarts")
NAMES = sorted(path.stem for path in QUICKSTARTS.glob("*.py"))
TIMEOUT_S = 300
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S + 30),
    pytest.mark.skipif(not PYTHON, reason="SGC_CLIENTS_PYTHON is not set: make test-clients"),
]


@pytest.fixture(scope="module", params=["fake", "sgc-tiny"])
def served(request: pytest.FixtureRequest, http_engine: Any) -> Iterator[tuple[str, str]]:
    """The URL and the model: one whose texts are random, and one that has learnt to answer."""
    model = None if request.param == "sgc-tiny" else request.param
    with EmbeddedEngine(model, ["--http", "0"]) as engine:
        yield type(http_engine)(engine).url, request.param


@pytest.mark.parametrize("name", NAMES)
def test_a_quickstart_runs(served: tuple[str, str], name: str) -> None:
    assert PYTHON is not None
    command = [PYTHON, str(QUICKSTARTS / f"{name}.py"), *served]
    found = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert found.stdout.endswith("ok\n"), found.stderr[-4000:]
