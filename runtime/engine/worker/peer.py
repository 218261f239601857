"""Processes that end with the one that started them, whatever they are doing."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ending_with_peer(fd: int) -> Iterator[None]:
    """Within the block, such as while a model loads, the process exits if the other end of a socket
    or pipe is gone."""
    is_done = threading.Event()

    def watch() -> None:
        poll = select.poll()
        poll.register(fd, 0)  # a hang-up is always reported
        while not is_done.is_set():
            if poll.poll(100) and not is_done.is_set():
                os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        is_done.set()
