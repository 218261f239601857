"""Times work on a device: by its own events, medians of many, over inputs that take turns so that
none stays in the cache. On the CPU, which stands in for a GPU, by the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

WARM_UP = 3


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
    work: Sequence[Callable[[], Any]], device: torch.device, *, n: int = 30, budget_s: float = 2.0
) -> float:
    """The median time of `work`, whose calls take turns; at least 5 are timed."""
    for one in (work * WARM_UP)[: max(WARM_UP, len(work))]:
        one()
    wait(device)
    took: list[float] = []
    until = time.perf_counter() + budget_s
    for i in range(n):
        took.append(_once_s(work[i % len(work)], device))
        if i >= 4 and time.perf_counter() > until:
            break
    return statistics.median(took)


def _once_s(work: Callable[[], Any], device: torch.device) -> float:
    if device.type != "cuda":
        started_s = time.perf_counter()
        work()
        return time.perf_counter() - started_s
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
