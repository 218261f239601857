"""Times work on a device: medians of many, over inputs that take turns so that none stays in the
cache. Kernels by the device's own events; steps, and all on the CPU, by the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

WARM_UP = 3
# What a device is kept busy with, about a millisecond, while the host launches what is timed.
_HEAD_START_CYCLES = 2_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """One measurement. share: of the limit that the machine sets, from 0 to 1; None where no limit
    is meant."""

    part: str
    case: str
    value: float
    unit: str
    share: float | None = None


def median_s(
    work: Sequence[Callable[[], Any]],
    device: torch.device,
    *,
    n: int = 30,
    budget_s: float = 2.0,
    is_step: bool = False,
) -> float:
    """The median time of `work`, whose calls take turns; at least 5 are timed. is_step: from the
    call to the end, the host's work included; else what the device takes alone."""
    for one in (work * WARM_UP)[: max(WARM_UP, len(work))]:
        one()
    wait(device)
    took: list[float] = []
    until = time.perf_counter() + budget_s
    once = _step_s if is_step or device.type != "cuda" else _kernel_s
    for i in range(n):
        took.append(once(work[i % len(work)], device))
        if i >= 4 and time.perf_counter() > until:
            break
    return statistics.median(took)


def _step_s(work: Callable[[], Any], device: torch.device) -> float:
    started_s = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started_s


def _kernel_s(work: Callable[[], Any], device: torch.device) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(_HEAD_START_CYCLES)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
