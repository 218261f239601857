"""Other packages' quickstarts run on the server: `make test-clients` makes their environment.

Their versions are in `quickstarts/requirements.txt`; they would not fit into the environment of the
other tests, and these are skipped without SGC_CLIENTS_PYTHON, a Python that has them. LlamaIndex
needs an older client of OpenAI's than the Agents SDK: SGC_LLAMA_INDEX_PYTHON is its own. The
server has a compiled program, `program/tip`, too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from services.conftest import serving

import sgc
from sgc.runtime.engine.model.models import DEFAULT_FOLDER

QUICKSTARTS = Path(__file__).with_name("quickstarts")
PYTHONS = {QUICKSTARTS: "SGC_CLIENTS_PYTHON", QUICKSTARTS / "llama_index": "SGC_LLAMA_INDEX_PYTHON"}
FILES = sorted(path for folder in PYTHONS for path in folder.glob("*.py"))
TIMEOUT_S = 300
pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT_S + 30)]


@sgc.function
def tip(s: sgc.ProgramState, topic: str) -> str:
    s += "A tip for " + topic + ":" + sgc.gen("tip", max_tokens=24, ignore_eos=True)
    return s["tip"]


@pytest.fixture(scope="module", params=["fake", "sgc-tiny"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The URL and the model: one whose texts are random, and one that has learnt to answer."""
    folder = tmp_path_factory.mktemp("served")
    tip.compile().save(folder / "tip.sgir")
    model = "fake" if request.param == "fake" else str(DEFAULT_FOLDER)
    options = ["--model", model, "--served-model-name", request.param]
    with serving(folder, f"--program={folder / 'tip.sgir'}", *options) as engine:
        yield engine.url, request.param


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_quickstart_runs(served: tuple[str, str], path: Path) -> None:
    python = os.environ.get(PYTHONS[path.parent])
    if not python:
        pytest.skip(f"{PYTHONS[path.parent]} is not set: make test-clients")
    command = [python, str(path), *served]
    found = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert found.stdout.endswith("ok\n"), found.stderr[-4000:]
