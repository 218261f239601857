"""Counters since the engine's start, and statistics of its current state."""

from __future__ import annotations

from dataclasses import dataclass

from sgc.runtime.engine.requests.request import Usage
from sgc.runtime.engine.scheduling.runs_now import RunNow

_NO_USAGE = Usage()


@dataclass(slots=True)
class Counters:
    """Sums over finished requests, without prefetches, and over steps. sampled_tokens: counted at
    once, including tokens forced without a step. positions_run: refused guesses are not in it;
    speculated_tokens: refused guesses; accepted_tokens: guesses that were right.

    forward_s: seconds in `Forward.run`, the wait for its result included.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0
    positions_run: int = 0
    steps: int = 0
    sampled_tokens: int = 0
    forced_tokens: int = 0
    speculated_tokens: int = 0
    accepted_tokens: int = 0
    forward_s: float = 0.0

    def add(self, usage: Usage, counted: Usage = _NO_USAGE) -> None:
        """Adds usage to the sums. counted: the part that is already in them."""
        self.prompt_tokens += usage.prompt_tokens - counted.prompt_tokens
        self.cached_tokens += usage.cached_tokens - counted.cached_tokens
        self.computed_tokens += usage.computed_tokens - counted.computed_tokens
        self.completion_tokens += usage.completion_tokens


@dataclass(frozen=True, slots=True)
class Stats:
    counters: Counters
    preemptions: int
    evicted_tokens: int
    pool_tokens: int
    free_tokens: int
    cached_pool_tokens: int
    evictable_tokens: int
    running_requests: int
    waiting_requests: int
    parked_requests: int
    prefetches: int
    prefetched_tokens: int
    dropped_prefetches: int
    waiting_prefetches: int
    programs: int
    first_programs: tuple[RunNow, ...]
