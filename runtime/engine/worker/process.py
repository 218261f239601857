"""Starts the step process: a plain child with an inherited socket; nothing is pickled.

It imports almost nothing, because the process is started before anything else is imported.
`worker/link.py` speaks with it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgc.runtime.engine.process import child, tuning


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """socket: our end of its socket; it ends when that is closed."""

    process: subprocess.Popen[bytes]
    socket: socket.socket

    def abandon(self) -> None:
        """Ends the process at once, if nothing has connected to it."""
        self.socket.close()
        self.process.kill()
        self.process.wait()


def spawn(
    config: Mapping[str, Any], command: Sequence[str] | None = None, is_heard: bool = False
) -> WorkerProcess:
    """Starts the process, which loads its model meanwhile. config: see `load.WorkerConfig`.
    is_heard: whether what it writes to standard error is read here."""
    command = command or child.python_module("sgc.runtime.engine.worker.main")
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*command, "--fd", str(theirs.fileno()), "--config", json.dumps(dict(config))],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE if is_heard else None,
            env={**os.environ, **tuning.environment(os.environ)},
            start_new_session=True,  # the server handles a terminal's Ctrl-C
        )
    return WorkerProcess(process, ours)
