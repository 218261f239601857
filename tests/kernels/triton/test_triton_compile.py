"""The attention kernels compile for GPUs, and fit them: no GPU is needed to see that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KIB = 1024
SHARED = {80: 163 * KIB, 90: 227 * KIB}
# Where the output goes may be spilled while tiles of 128 rows are computed; what loops use may not.
SPILLED = 64


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Without Triton's interpreter."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    return environment


@pytest.fixture(scope="module")
def compiled(environment) -> list[dict]:
    return told("compile_attention.py", environment)


def told(program: str, environment: dict[str, str]) -> list[dict]:
    command = [sys.executable, "-P", str(Path(__file__).parent / program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(rows: list[dict]) -> str:
    keys = list(rows[0])[1:]
    lines = [f"{'kernel':56}" + "".join(f"{key:>10}" for key in keys)]
    for row in rows:
        lines.append(f"{row['kernel']:56}" + "".join(f"{row[key]:>10}" for key in keys))
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kernels_fit_the_chip_and_copy_and_multiply_as_they_should(compiled):
    print("\n" + table(compiled))
    assert {row["gpu"] for row in compiled} == set(SHARED)
    for row in compiled:
        assert row["shared"] <= SHARED[row["gpu"]], row
        assert row["spilled"] <= SPILLED, row
        assert row["in_loops"] == 0, row
        if row["kernel"].startswith("attend"):
            assert row["cp16"] > 0, row
            assert row["cp4"] == 0, row
            is_wide = row["warps"] == 8 and "fp32" not in row["kernel"]
            assert (row["wgmma"] > 0) == (is_wide and row["gpu"] == 90), row


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kernels_compile_for_amd_too(environment):
    """Wide tiles of attention, for prompts, do not fit into 64 KiB there, at these block sizes."""
    found = told("compile_amd.py", environment)
    print("\n" + table(found))
    assert len(found) > 40
    too_large = {row["kernel"] for row in found if row["shared"] > 64 * KIB}
    assert all("rows 64" in name or "rows 128" in name for name in too_large), too_large
