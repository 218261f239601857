"""Counters since the engine's start, and statistics of its current state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from sgc.runtime.engine.disk.stats import DiskStats
from sgc.runtime.engine.requests.request import State, Usage, Work
from sgc.runtime.engine.scheduling.prefetch_queue import PrefetchQueue
from sgc.runtime.engine.scheduling.runs_now import MOST_SHOWN, RunNow, runs_now
from sgc.runtime.engine.scheduling.scheduler import Scheduler

_NO_USAGE = Usage()


@dataclass(slots=True)
class Counters:
    """Sums over finished requests, without prefetches, and over steps. sampled_tokens: counted at
    once, including tokens forced without a step. positions_run: refused guesses are not in it;
    speculated_tokens: refused guesses; accepted_tokens: guesses that were right.

    forward_s: seconds in `Forward.run`, the wait for its result included. encoded_images,
    reused_images: images whose positions were run, with and without running the encoder.
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
    encoded_images: int = 0
    reused_images: int = 0

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
    disk: DiskStats
    encoded_images_bytes: int = 0


def stats_now(
    counters: Counters,
    scheduler: Scheduler,
    prefetches: PrefetchQueue,
    live: Collection[Work],
    now: float,
    disk: DiskStats,
    encoded_images_bytes: int = 0,
) -> Stats:
    """live: the unfinished requests, without prefetches. now: on the clock of `Work.times`."""
    cache, running = scheduler.cache, len(scheduler.running)
    programs = runs_now(live, now)
    return Stats(
        counters=replace(counters),
        preemptions=scheduler.n_preempted,
        evicted_tokens=cache.n_evicted,
        pool_tokens=cache.pool.n_pages,
        free_tokens=cache.pool.n_free,
        cached_pool_tokens=cache.tree.n_tokens,
        evictable_tokens=cache.tree.n_evictable,
        running_requests=running,
        waiting_requests=len(live) - running,
        parked_requests=sum(work.state is State.PARKED for work in live),
        prefetches=prefetches.n_ended,
        prefetched_tokens=prefetches.n_run,
        dropped_prefetches=prefetches.n_dropped,
        waiting_prefetches=len(prefetches),
        programs=len(programs),
        first_programs=tuple(programs[:MOST_SHOWN]),
        disk=disk,
        encoded_images_bytes=encoded_images_bytes,
    )
