"""A job through a batch API: its batches, CPU seconds and memory, for more and more rows.

    python -P benches/batch_jobs.py [-n 1000 8192 20000] [--out benches/results/batch_jobs.json]

Each row makes four requests in three stages: 1, 2 and 1. The provider is the tests' scripted
server, which answers at the second look, with waits of tenths of a second: what is measured is the
client, `sgc run --rows … --batch`. CPU seconds and peak memory are those of the
client's process, by wait4.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]

from providers.batch_jobs import Folder  # noqa: E402
from providers.batch_server import BatchServer  # noqa: E402

PADDING = 500  # characters of each row's topic, besides


def measure(n_rows: int, folder: Path) -> dict[str, Any]:
    rows = Folder(folder, 0)
    topics = ({"topic": f"tea {n} " + "x" * PADDING} for n in range(n_rows))
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, topics)))
    with BatchServer() as server:
        start_s = time.monotonic()
        child = rows.child(server, "openai", "--quiet")
        assert child.stderr is not None
        err = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.monotonic() - start_s
        if status or len(rows.results()) != n_rows:
            raise SystemExit(f"the job ended with {status}: {err}")
        batches = [len(batch.requests) for batch in server.batches.values()]
        assert set(server.submitted.values()) == {1}
    return {
        "rows": n_rows,
        "batches": batches,
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "wall_s": round(wall_s, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
        "journal_bytes": (folder / "out.log.batches").stat().st_size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, nargs="+", default=[1000, 8192, 20000])
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/batch_jobs.json")
    given = parser.parse_args()
    found = []
    for n_rows in given.n:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(n_rows, Path(folder)))
        print(json.dumps(found[-1]))
    told = {
        "command": f"python -P benches/batch_jobs.py -n {' '.join(map(str, given.n))}",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}",
        "versions": {"python": platform.python_version(), "openai": version("openai")},
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True,
            check=True,
        ).stdout.strip(),
        "runs": found,
    }  # fmt: skip
    given.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
