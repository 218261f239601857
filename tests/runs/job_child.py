"""The command in a process of its own, on a backend inside it: `job_child.py run …`.

With CLINGS set, requests do not answer, and do not end when they are cancelled.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from row_jobs import Counting, endpoint  # noqa: E402
from waiting import BOUND_S  # noqa: E402

from sgc.cli import main  # noqa: E402
from sgc.cli.running import run  # noqa: E402


class Clinging(Counting):
    async def generate(self, prompt, sampling, on_delta=None):
        print("asked", flush=True)
        while True:
            try:
                await asyncio.sleep(BOUND_S)
            except asyncio.CancelledError:
                print("cancelled", flush=True)


if __name__ == "__main__":
    run.connect = endpoint(Clinging() if "CLINGS" in os.environ else Counting())  # type: ignore[assignment]
    main(sys.argv[1:])
