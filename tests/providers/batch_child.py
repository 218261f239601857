"""The command in a process of its own, with short waits: `batch_child.py run … --batch`.

With KILL_AFTER set, the process ends by SIGKILL when so many replies are in its log.
"""

from __future__ import annotations

import os
import signal
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
from sgc.runtime.executor.interface.log import Json  # noqa: E402
from sgc.runtime.executor.log.run_log import RunLog  # noqa: E402


def shorten() -> None:
    """The waits of a day in tenths of a second; but threads are waited for, however slow."""
    watching.FIRST_POLL_S = 0.02
    watching.LONGEST_POLL_S = 0.05
    running.WAIT_S = running.FULL_WAIT_S = 0.02
    submitting.SETTLE_S = submitting.FIRST_WAIT_S = 0.05
    stages.LINGER_S = stages.MAX_LINGER_S


def die_after(n_replies: int) -> None:
    append = RunLog.append

    def dying(log: RunLog, record: Json) -> None:
        nonlocal n_replies
        append(log, record)
        n_replies -= record["kind"] in ("generate", "score")
        if not n_replies:
            os.kill(os.getpid(), signal.SIGKILL)

    RunLog.append = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    shorten()
    if "KILL_AFTER" in os.environ:
        die_after(int(os.environ["KILL_AFTER"]))
    main(sys.argv[1:])
