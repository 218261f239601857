"""The kernels over rows compile for the GPUs they are for, and fit into their registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# What a kernel that runs in a full grid may take, so that two of its programs fit a multiprocessor.
MAX_REGISTERS = 128


@pytest.mark.slow
def test_kernels_compile_and_do_not_spill():
    program = Path(__file__).with_name("compile_rows.py")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    root = str(Path(__file__).resolve().parents[3])
    environment["PYTHONPATH"] = os.pathsep.join((root, environment.get("PYTHONPATH", "")))
    command = [sys.executable, "-P", str(program)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    print("\n".join(f"{row['kernel']:30} {row}" for row in rows))
    assert {row["gpu"] for row in rows} == {80, 90}
    for row in rows:
        assert row["stack"] == row["local"] == 0, row
        assert row["registers"] <= MAX_REGISTERS, row
