"""The committed protobuf modules are what the `.proto` files beside them generate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc_tools")

ROOT = Path(__file__).resolve().parents[2]


def test_generated_modules_are_up_to_date(tmp_path: Path) -> None:
    tool = ROOT / "tools" / "generate_proto.py"
    subprocess.run([sys.executable, "-P", str(tool), "--out", str(tmp_path)], check=True)
    generated = sorted((tmp_path / "sgc" / "proto").iterdir())
    committed = sorted(path.name for path in (ROOT / "proto").glob("*_pb2*.py*"))
    assert [path.name for path in generated] == committed
    for path in generated:
        found = (ROOT / "proto" / path.name).read_text(encoding="utf-8")
        assert found == path.read_text(encoding="utf-8"), "run: python tools/generate_proto.py"
