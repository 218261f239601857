"""A program that commands are given, and the command as a process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIP = str(ROOT / "examples" / "tip_suggestion.py")
SGC = [sys.executable, "-P", "-m", "sgc"]


@pytest.fixture
def tip(sgc_command, tmp_path) -> Path:
    assert sgc_command("compile", TIP, "-o", "tip.sgir")[0] == 0
    return tmp_path / "tip.sgir"
