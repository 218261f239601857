"""The command in a process of its own, with short waits: `batch_child.py run … --batch`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from sgc.cli import main  # noqa: E402
from sgc.runtime.executor.backends.providers.batches import (  # noqa: E402
    running,
    stages,
    submitting,
    watching,
)


def shorten() -> None:
    """The waits of a day in tenths of a second."""
    watching.FIRST_POLL_S = 0.02
    watching.LONGEST_POLL_S = 0.05
    running.WAIT_S = running.FULL_WAIT_S = 0.02
    submitting.SETTLE_S = submitting.FIRST_WAIT_S = 0.05
    stages.LINGER_S = 0.1


if __name__ == "__main__":
    shorten()
    main(sys.argv[1:])
