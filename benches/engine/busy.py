"""Processes that keep cores busy, to measure what an engine loses beside them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

BUSY = "print(flush=True)\nwhile True: pass"


@contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """Within the block, n processes of one endless loop each."""
    with ExitStack() as stack:
        for _ in range(n):
            process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
            stack.callback(_stop, process)
            assert process.stdout is not None
            process.stdout.readline()  # it runs
        yield


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
