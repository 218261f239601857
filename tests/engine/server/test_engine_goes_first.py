"""A script whose engine ends before it does leaves nothing behind, and prints nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sgc
from sgc.runtime.engine.launch import EmbeddedEngine

@sgc.function
def hello(s):
    s += "Hi" + sgc.gen("a", max_tokens=4)

with EmbeddedEngine("fake") as engine:
    print(hello.run(backend=sgc.connect(engine.uri), temperature=0).text())
"""


@pytest.mark.slow
def test_nothing_is_left_pending(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-P", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("Hi")
    assert (done.returncode, done.stderr) == (0, "")
