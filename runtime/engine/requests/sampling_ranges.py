"""The ranges of sampling parameters: for the server, which checks first, and for the core."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_BIAS = 1000.0


@dataclass(frozen=True, slots=True)
class Range:
    low: float
    high: float
    excludes_low: bool = False

    def __contains__(self, value: float) -> bool:
        is_low = value == self.low and self.excludes_low
        return math.isfinite(value) and self.low <= value <= self.high and not is_low

    def __str__(self) -> str:
        return f"{'(' if self.excludes_low else '['}{self.low:g}, {self.high:g}]"


# A repetition penalty multiplies or divides logits: near 0 they would become infinite.
RANGES = {
    "temperature": Range(0.0, 100.0),
    "top_p": Range(0.0, 1.0, excludes_low=True),
    "min_p": Range(0.0, 1.0),
    "frequency_penalty": Range(-2.0, 2.0),
    "presence_penalty": Range(-2.0, 2.0),
    "repetition_penalty": Range(1e-3, 100.0),
}
BIAS = Range(-MAX_BIAS, MAX_BIAS)


def problem_with(name: str, value: float, allowed: Range) -> str:
    """Why a number is refused; "" if it is allowed."""
    return "" if value in allowed else f"{name} must be in {allowed}, found {value:g}"


def problem_with_top_k(top_k: int) -> str:
    is_allowed = top_k == -1 or top_k >= 1
    return "" if is_allowed else f"top_k must be -1 (off) or at least 1, found {top_k}"
