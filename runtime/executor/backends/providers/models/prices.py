"""Prices of tokens, in US dollars per million, and the cost of a request."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sgc.errors import UsageError

MILLION = 1_000_000
_REQUIRED, _WRITES = ("input", "output"), ("cache_write_5m", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens. above: prompts with more tokens have the prices of `long`."""

    input: float
    output: float
    cached: float
    cache_write_5m: float
    cache_write_1h: float
    above: int | None = None
    long: Prices | None = None

    def at(self, prompt_tokens: int) -> Prices:
        """The prices of a request with that many prompt tokens."""
        is_long = self.long is not None and self.above is not None and prompt_tokens > self.above
        return self.long if is_long and self.long is not None else self

    def cost(
        self, prompt: int, cached: int, written_5m: int, written_1h: int, output: int
    ) -> float:
        """The cost in dollars. prompt: all prompt tokens, including cached and written ones."""
        rate = self.at(prompt)
        plain = max(prompt - cached - written_5m - written_1h, 0)
        parts = (
            plain * rate.input,
            cached * rate.cached,
            written_5m * rate.cache_write_5m,
            written_1h * rate.cache_write_1h,
            output * rate.output,
        )
        return math.fsum(parts) / MILLION

    def times(self, factor: float) -> Prices:
        """All prices times a factor, as of a provider's batches."""
        names = ("input", "output", "cached", *_WRITES)
        rates = {name: getattr(self, name) * factor for name in names}
        return replace(self, **rates, long=None if self.long is None else self.long.times(factor))

    def ceiling(self, prompt: int, output: int) -> float:
        """The most that a request with at most these tokens can cost."""
        rate = self.at(prompt)
        dearest = max(rate.input, rate.cache_write_5m, rate.cache_write_1h)
        return (prompt * dearest + output * rate.output) / MILLION


def prices_of(given: Any, what: str) -> Prices:
    """Reads prices from an object of the table or a user's file; raises UsageError if invalid.

    Missing prices of cached tokens and cache writes equal the input price.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} must be an object of prices, found {given!r}")
    known = {*_REQUIRED, "cached", *_WRITES, "long"}
    for name in _REQUIRED:
        if name not in given:
            raise UsageError(f"{what} have no {name!r}", hint="dollars a million tokens")
    if unknown := sorted(set(given) - known - {"above"}):
        raise UsageError(f"{what} have an unknown {unknown[0]!r}", hint=", ".join(sorted(known)))
    rates = {name: _number(given, name, what) for name in given if name not in ("long", "above")}
    rest = [rates.get(name, rates["input"]) for name in ("cached", *_WRITES)]
    found = Prices(rates["input"], rates["output"], rest[0], rest[1], rest[2])
    long = given.get("long")
    if long is None:
        return found
    above = long.get("above") if isinstance(long, Mapping) else None
    if not isinstance(above, int) or above < 0:
        raise UsageError(f"the long prices of {what} must say `above` how many prompt tokens")
    inner = prices_of({k: v for k, v in long.items() if k != "above"}, what)
    return replace(found, above=above, long=inner)


def _number(given: Mapping[str, Any], name: str, what: str) -> float:
    value = given[name]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise UsageError(f"{what}: {name} must be a number of dollars, found {value!r}")
    return float(value)


def read_prices(path: Path, model: str) -> Prices | None:
    """A user's prices of a model: a JSON object from names, which may be globs, to prices.

    None if the file has none for the model. Raises UsageError for an invalid file.
    """
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--prices {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--prices {path} is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError(f"--prices {path} must be an object from models to prices")
    found = {name: prices_of(each, f"the prices of {name}") for name, each in given.items()}
    if model in found:
        return found[model]
    return next((each for name, each in found.items() if fnmatchcase(model, name)), None)
