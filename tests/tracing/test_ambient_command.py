"""`sgc compile --allow-ambient`: what it prints, and what a run of the file says later."""

from __future__ import annotations

from pathlib import Path

import pytest

import sgc
from sgc.cli import main
from sgc.errors import SgcWarning

VARIABLE = "SGC_TEST_AMBIENT"
PROGRAM = f"""
import os, time
import sgc

@sgc.function
def stamped(s, x: str):
    s += os.environ.get("{VARIABLE}", "none")
    s += str(time.time()) + x + sgc.gen("a")
"""


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Runs a command line in a folder with the program: (exit code, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "sesame")
    Path("stamped.py").write_text(PROGRAM)

    def run(*argv: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(argv))
        return int(ended.value.code or 0), capsys.readouterr().err

    return run


def test_what_is_kept_is_said_once_a_line_and_what_is_guarded_is_not(command):
    code, told = command("compile", "stamped.py", "-o", "p.sgir", "--allow-ambient")
    assert code == 0
    warning, done = told.splitlines()
    assert warning.startswith("sgc: warning: stamped.py:8: the program reads the clock; compiled,")
    assert done.startswith("p.sgir: stamped, ")


def test_the_file_warns_when_it_is_loaded_elsewhere(command, monkeypatch):
    command("compile", "stamped.py", "-o", "p.sgir", "--allow-ambient")
    monkeypatch.setenv(VARIABLE, "another")
    with pytest.warns(SgcWarning, match=f"p.sgir was compiled with the environment {VARIABLE}"):
        sgc.load("p.sgir")
    _, told = command("run", "p.sgir")
    assert told.startswith("sgc: warning: p.sgir was compiled with the environment")


def test_without_the_option_the_first_line_that_reads_is_refused(command):
    code, told = command("compile", "stamped.py", "-o", "p.sgir")
    assert code == 1
    assert "stamped.py:7: the program reads the environment while being traced" in told
    assert "--allow-ambient" in told
    assert not Path("p.sgir").exists()
