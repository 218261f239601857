"""A program that commands are given, and the command as a process."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from sgc.cli import main
from sgc.runs.endpoints import Runtime

ROOT = Path(__file__).resolve().parents[2]
TIP = str(ROOT / "examples" / "tip_suggestion.py")
SGC = [sys.executable, "-P", "-m", "sgc"]


@pytest.fixture(scope="session")
def compiled_tip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tip") / "tip.sgir"
    with pytest.raises(SystemExit) as ended:
        main(["compile", TIP, "-o", str(path)])
    assert not ended.value.code
    return path


@pytest.fixture
def tip(sgc_command, compiled_tip, tmp_path) -> Path:
    """In the folder that commands run in."""
    return Path(shutil.copy(compiled_tip, tmp_path))


@pytest.fixture
def on_fake(fake_engine: Runtime) -> tuple[str, str]:
    """Options that run a command on an engine of all tests, as starting one takes a second."""
    return "--engine", fake_engine._engine.uri
