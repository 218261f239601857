"""How tests wait, and what they measure where a busy machine makes everything slow.

A test waits for events. Its bound is a net for what hangs and no promise of speed; what must cost
little is measured in seconds of CPU, which other programs do not stretch.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

BOUND_S = 60.0  # less than pytest's own, which does not say what was waited for
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def until(is_true: Callable[[], object]) -> None:
    end = time.monotonic() + BOUND_S
    while not is_true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


async def until_async(is_true: Callable[[], Awaitable[object]]) -> None:
    end = time.monotonic() + BOUND_S
    while not await is_true():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.01)


async def settle() -> None:
    """Lets all that is ready on the loop go on until it waits for something else."""
    for _ in range(100):
        await asyncio.sleep(0)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0  # it has just ended; from now on it is among its parent's
    used = sum(map(int, fields[11:15])) / TICKS_A_SECOND  # those that have ended included
    return used + sum(cpu_s(int(child)) for child in children)


@contextmanager
def cpu_below(seconds: float, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Fails if what is done inside costs more CPU, of this process or by another clock.

    The garbage collector rests: what it costs depends on what other tests have left.
    """
    gc.disable()
    before = clock()
    try:
        yield
    finally:
        gc.enable()
    used_s = clock() - before
    assert used_s < seconds, f"it took {used_s:.2f} s of CPU, of at most {seconds:g}"
