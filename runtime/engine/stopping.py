"""How a server comes to its end: signals, and draining what is under way.

SIGTERM drains, if the server may take time for it: new requests are refused so that clients can try
another engine or try later, running requests go on to their end, and requests left after that time
are refused in the same way. SIGINT, a second signal and the end of stdin stop it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from sgc.errors import counted
from sgc.runtime.engine.logs.log import Log
from sgc.runtime.engine.server.shared import Shared

if TYPE_CHECKING:
    from sgc.runtime.engine.http.beside import Beside

_POLL_S = 0.02


class Stop:
    """asked: set by the first signal; now: set when there is no time to drain."""

    def __init__(self, exit_with_parent: bool) -> None:
        self.asked, self.now = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_sigterm)
        loop.add_signal_handler(signal.SIGINT, self.at_once)
        if exit_with_parent:
            loop.add_reader(0, _at_end_of_input(loop, self.at_once))

    def at_once(self) -> None:
        self.now.set()
        self.asked.set()

    def _on_sigterm(self) -> None:
        if self.asked.is_set():
            self.now.set()
        self.asked.set()


async def drain(
    shared: Shared, beside: Beside | None, seconds: float, now: asyncio.Event, log: Log
) -> None:
    """Waits until running work has ended, for at most so many seconds, or until `now`. Programs
    first, since they still ask the engine."""
    n_programs = 0 if beside is None else beside.n_running
    if now.is_set() or seconds <= 0 or not (shared.n_active or n_programs):
        return
    programs = f", and {counted(n_programs, 'program')}" if n_programs else ""
    log.tell(
        "stopping",
        f"stopping: {shared.n_active} requests{programs} are under way, for at most {seconds:g} s "
        "more; a second signal stops at once",
        requests=shared.n_active,
    )
    shared.is_leaving = True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            if beside is not None:
                beside.refuse_new()
                await _until(lambda: not beside.n_running, now)
            shared.is_draining = True
            await _until(lambda: not shared.n_active, now)


async def _until(is_true: Callable[[], bool], now: asyncio.Event) -> None:
    while not is_true() and not now.is_set():
        await asyncio.sleep(_POLL_S)


def _at_end_of_input(
    loop: asyncio.AbstractEventLoop, stop: Callable[[], None]
) -> Callable[[], None]:
    def on_readable() -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(0, 4096)
        if not data:
            loop.remove_reader(0)
            stop()

    return on_readable
