"""A run's defaults, and how a generation's fields become a decided `Sampling`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.backend import Sampling
from sgc.runtime.executor.seeds import draw_seed

DEFAULT_MAX_TOKENS = 128

# What each parameter may be: (types, lowest, highest); None bounds nothing.
RANGES: Mapping[str, tuple[type | tuple[type, ...], float | None, float | None]] = {
    "max_tokens": (int, 0, 2**31 - 1),
    "min_tokens": (int, 0, 2**31 - 1),
    "temperature": ((int, float), 0.0, 100.0),
    "top_p": ((int, float), 0.0, 1.0),
    "top_k": (int, -1, 2**31 - 1),
    "min_p": ((int, float), 0.0, 1.0),
    "frequency_penalty": ((int, float), -100.0, 100.0),
    "presence_penalty": ((int, float), -100.0, 100.0),
    "repetition_penalty": ((int, float), 1e-3, 100.0),
    "seed": (int, None, None),
    "ignore_eos": (bool, None, None),
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run's seed, row key and sampling defaults; None leaves a parameter to its own.

    stop and stop_token_ids are added to every generation's own.
    """

    seed: int = 0
    row: str = "0"
    max_tokens: int = DEFAULT_MAX_TOKENS
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        for name in RANGES:
            check_parameter(name, getattr(self, name))


_SAMPLED = tuple(
    f.name for f in fields(Sampling) if f.name not in ("seed", "stop", "stop_token_ids")
)


def check_parameter(name: str, value: Any) -> None:
    """Raises UsageError unless `value` is one the parameter can have."""
    types: Any
    types, low, high = RANGES[name]
    wanted = "a whole number" if types is int else "a number" if types is not bool else "a bool"
    is_bool = isinstance(value, bool)
    if not isinstance(value, types) or (is_bool and types is not bool):
        raise UsageError(f"{name} must be {wanted}, found {value!r}")
    if is_bool:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name} must be finite, found {value!r}")
    if (low is not None and value < low) or (high is not None and value > high):
        low_text, high_text = (
            f"{bound:.6g}" if bound != int(bound) else f"{int(bound)}"
            for bound in (low or 0, high or 0)
        )
        raise UsageError(f"{name} must be from {low_text} to {high_text}, found {value!r}")


def decide_sampling(
    given: Mapping[str, Any], options: RunOptions, path: str, ordinal: int
) -> Sampling:
    """A generation's parameters: its own where given, else the run's defaults."""
    values: dict[str, Any] = {}
    for name in _SAMPLED:
        value = given.get(name)
        if value is None:
            value = getattr(options, name)
        else:
            check_parameter(name, value)
        values[name] = value
    if given.get("seed") is not None:
        check_parameter("seed", given["seed"])
        values["seed"] = draw_seed(given["seed"], "", "explicit", 0)
    else:
        values["seed"] = draw_seed(options.seed, options.row, path, ordinal)
    values["stop"] = _stops(given.get("stop")) + options.stop
    values["stop_token_ids"] = tuple(given.get("stop_token_ids") or ()) + options.stop_token_ids
    sampling = Sampling(**values)
    # Greedy draws nothing: a seed would only make equal requests look different.
    return replace(sampling, seed=0) if sampling.is_greedy else sampling


def _stops(given: Any) -> tuple[str, ...]:
    stops = (given,) if isinstance(given, str) else tuple(given or ())
    for stop in stops:
        if not isinstance(stop, str) or not stop:
            raise UsageError(f"stop must be non-empty texts, found {stop!r}")
    return stops
