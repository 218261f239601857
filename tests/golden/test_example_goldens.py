"""The IR of every example, as written and after each pass, is what its golden file says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from golden_files import compare

from sgc.functions import Function
from sgc.ir.parser import parse
from sgc.ir.printer import to_text
from sgc.tracing.tracer import trace

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def load(name: str) -> Function:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize("name", NAMES)
def test_trace(name):
    command = f"pytest tests/golden/test_example_goldens.py -k {name}"
    text = to_text(trace(load(name)))
    compare(Path(__file__).parent / f"{name}.sgir.txt", text, command)
    assert parse(text) == trace(load(name))
