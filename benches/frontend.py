"""Front-end latencies as whole processes: importing, compiling, and a first run on the fake model.

    python benches/frontend.py [--runs 7] [--out FILE.json]

Wall seconds of separate processes, Python's own start included; median, minimum and maximum.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = [sys.executable, "-P"]


def commands(folder: Path) -> dict[str, list[str]]:
    tip = str(ROOT / "examples" / "tip_suggestion.py")
    run = ["-m", "sgc", "run", tip, "--model", "fake", "--arg", "topic=tea", "--json"]
    found = {
        "python alone": [*PYTHON, "-c", ""],
        "import sgc": [*PYTHON, "-c", "import sgc"],
        "run tip_suggestion, fake": [*PYTHON, *run],
    }
    for path in sorted((ROOT / "examples").glob("*.py")):
        compile_ = ["-m", "sgc", "compile", str(path), "-o", str(folder / "out.sgir")]
        found[f"compile {path.stem}"] = [*PYTHON, *compile_]
    return found


def measure(command: list[str], runs: int) -> dict[str, float]:
    times = []
    for _ in range(runs + 1):
        start_s = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        times.append(time.perf_counter() - start_s)
    times = times[1:]  # the first one warms the file cache
    return {
        "median_s": round(statistics.median(times), 4),
        "min_s": round(min(times), 4),
        "max_s": round(max(times), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = {
            what: measure(command, arguments.runs) for what, command in commands(Path(name)).items()
        }
    report = {
        "command": "python benches/frontend.py",
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "runs": arguments.runs,
        "rows": rows,
    }
    text = json.dumps(report, indent=2)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
