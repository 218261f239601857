"""Waiting in tests, and measuring cost on a busy machine.

A test waits for events. The bound of a wait only catches hangs, and is no claim about speed; cost
is measured in CPU seconds, which other programs do not affect.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

BOUND_S = 60.0  # less than pytest's timeout, which does not say what the test waited for
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
    """Runs all tasks that are ready on the loop until they wait for something else."""
    for _ in range(100):
        await asyncio.sleep(0)


def cpu_s(pid: int) -> float:
    """CPU seconds that a process and its children have used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0  # it has just ended, and counts as time of its parent from now on
    used = sum(map(int, fields[11:15])) / TICKS_A_SECOND  # children that have ended included
    return used + sum(cpu_s(int(child)) for child in children)


@contextmanager
def cpu_below(seconds: float, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Fails if its body takes more CPU seconds, of this process or by another clock.

    The garbage collector is off, since its cost depends on the garbage of other tests.
    """
    gc.disable()
    before = clock()
    try:
        yield
    finally:
        gc.enable()
    used_s = clock() - before
    assert used_s < seconds, f"it took {used_s:.2f} s of CPU, of at most {seconds:g}"
