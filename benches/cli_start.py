"""How long the command takes to start: help, version, and the completion of a word.

    python benches/cli_start.py [--reps 15] [--tree FOLDER] [--out FILE.json]

Each command is a process of its own; its CPU seconds (user and system) and wall seconds are the
median and the least of the repetitions. --tree: another checkout to measure, such as an older one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "sgc --help": ["--help"],
    "sgc run --help": ["run", "--help"],
    "sgc version": ["version"],
}
COMPLETES = {"COMP_WORDS": "sgc run --max", "COMP_CWORD": "2", "_SGC_COMPLETE": "bash_complete"}


def seconds(argv: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """CPU and wall seconds of one process."""
    before, start_s = os.times(), time.perf_counter()
    subprocess.run(argv, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)
    after, end_s = os.times(), time.perf_counter()
    cpu = after.children_user + after.children_system
    return cpu - before.children_user - before.children_system, end_s - start_s


def measured(argv: list[str], environment: dict[str, str], reps: int) -> dict[str, float]:
    seconds(argv, environment)  # bytecode is written
    cpu, wall = zip(*(seconds(argv, environment) for _ in range(reps)), strict=True)
    return {"cpu_s": statistics.median(cpu), "least_cpu_s": min(cpu),
            "wall_s": statistics.median(wall), "least_wall_s": min(wall)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=15)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(given.tree)}
    sgc = [sys.executable, "-P", "-m", "sgc"]
    found: dict[str, Any] = {
        name: measured([*sgc, *argv], environment, given.reps) for name, argv in COMMANDS.items()
    }
    if (given.tree / "sgc/cli/completion.py").exists():
        found["completion of a word"] = measured(sgc, {**environment, **COMPLETES}, given.reps)
    for name, numbers in found.items():
        print(f"{name:24} {numbers['cpu_s']:.3f} s of CPU, {numbers['wall_s']:.3f} s")
    if given.out:
        machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "reps": given.reps}
        given.out.write_text(json.dumps({**machine, "commands": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
