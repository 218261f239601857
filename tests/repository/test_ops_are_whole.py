"""Every op of the table can be run, bounded and seen in a golden file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sgc.ir.op_specs import Flag
from sgc.ir.ops import TABLE
from sgc.predict.bounds.asks import Nodes
from sgc.runtime.executor.ops.handlers import ASKING, HANDLERS

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
OPS = [spec.name for spec in TABLE if Flag.TERMINATOR not in spec.flags]


@pytest.mark.parametrize("op", OPS)
def test_an_op_has_a_handler_and_a_bound(op: str) -> None:
    assert op in HANDLERS or op in ASKING, "runtime/executor/ops/handlers.py"
    assert hasattr(Nodes, f"on_{op}"), "sgc/predict/bounds/nodes.py, or asks.py of one that asks"


def test_every_op_is_in_a_golden_file() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.rglob("*.txt"))
    missing = [op for op in OPS if re.search(rf"^  (%.* = )?{op} ", texts, re.MULTILINE) is None]
    assert not missing, f"tests/golden/programs/every_word.py has no {missing}"
