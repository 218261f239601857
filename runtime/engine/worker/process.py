"""Starts the step process: a plain child with an inherited socket; nothing is pickled.

Imports next to nothing: the process is started before all else, as everything waits for it.
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
    """socket: our end of what it speaks over; it ends when that is closed."""

    process: subprocess.Popen[bytes]
    socket: socket.socket

    def abandon(self) -> None:
        """Ends it at once, where nobody has come to speak with it."""
        self.socket.close()
        self.process.kill()
        self.process.wait()


def spawn(config: Mapping[str, Any], command: Sequence[str] | None = None) -> WorkerProcess:
    """config: see `load.WorkerConfig`. It loads its model while the caller does other things."""
    command = command or child.python_module("sgc.runtime.engine.worker.main")
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*command, "--fd", str(theirs.fileno()), "--config", json.dumps(dict(config))],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **tuning.environment(os.environ)},
            start_new_session=True,  # a terminal's Ctrl-C is the server's to handle
        )
    return WorkerProcess(process, ours)
