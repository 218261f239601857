"""The command in a process of its own, on a backend inside it: `job_child.py run …`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from row_jobs import Counting, endpoint  # noqa: E402

from sgc.cli import main  # noqa: E402
from sgc.cli.running import run  # noqa: E402

if __name__ == "__main__":
    run.connect = endpoint(Counting())  # type: ignore[assignment]
    main(sys.argv[1:])
