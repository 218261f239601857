"""The IR of every example, and of a program of all other words, is what its golden file says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from golden_files import compare
from tests_support import run_both

from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.programs.function import Function
from sgc.tracing.pieces.in_python import PiecesInPython
from sgc.tracing.tracer import trace

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "examples", Path(__file__).parent / "programs")
PATHS = {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("*.py"))}


def load(name: str) -> Function:
    spec = importlib.util.spec_from_file_location(name, PATHS[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize("name", PATHS)
def test_trace(name):
    command = f"pytest tests/golden/test_example_goldens.py -k {name}"
    text = to_text(trace(load(name), in_python=PiecesInPython()))
    compare(Path(__file__).parent / f"{name}.sgir.txt", text, command)
    assert parse(text) == trace(load(name), in_python=PiecesInPython())


def test_every_word_runs_alike(scripted):
    program = load("every_word")
    result = run_both(program, scripted(), photo=b"\xff\xd8\xff photo", question="who?", limit=3)
    assert len(result["many"]) == 3
    assert result.main.messages[0]["content"][1]["type"] == "image_url"
