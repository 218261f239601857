"""Random engines on the fake model, every invariant checked after each step, their answers held
against the naive model's.

`run(seed)` raises AssertionError at the first difference; the tests run it with one thing
varied at a time, tools/fuzz_cache.py at random and for long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from engine.core.fuzz import engine_laws as laws
from engine.core.fuzz.engine_play import AMPLE, Played, Setup, play
from engine.core.fuzz.engine_requests import (
    Answer,
    make_long_requests,
    make_requests,
    need,
    right_answers,
)
from other_caches import CACHES

from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import EngineRequest


def check_all(
    requests: Sequence[EngineRequest], setup: Setup, right: Mapping[int, Answer], seed: int = 0
) -> Played:
    """Plays and verifies everything that must be true of the setup."""
    played = play(requests, setup, seed, right)
    laws.assert_right(requests, played, right)
    if setup.is_calm:
        laws.assert_counted(requests, played)
        stats = played.core.stats()
        if setup.cache != "none" and not (setup.flushes or stats.evicted_tokens):
            laws.assert_kept(requests, played)
            if setup.shares_in_batch and setup.cache == "radix":
                laws.assert_run_once(requests, played)
    laws.assert_freed(played, setup.pool)
    return played


def make_setup(rng: np.random.Generator, requests: Sequence[EngineRequest]) -> Setup:
    largest, working_set = max(map(need, requests)), sum(map(need, requests))
    tight = max(largest, working_set // 10)
    is_quiet = rng.integers(0, 3) == 0  # nothing happens on the way: all counts are known
    pools = [tight, largest + int(rng.integers(0, 60)), AMPLE]
    return Setup(
        pool=AMPLE if is_quiet else int(rng.choice(pools)),
        chunk=int(rng.integers(1, 1 + rng.choice([4, 16, 64]))),
        max_running=int(rng.choice([1, 3, 256])),
        per_step=[None, 1, 2, 5][rng.integers(0, 4)],
        policy=str(rng.choice(POLICIES)),
        cache=str(rng.choice(["radix", *CACHES])),
        shares_in_batch=bool(rng.integers(0, 4)),
        headroom=int(rng.choice([0, 0, 4, 32])),
        cancels=0 if is_quiet else float(rng.choice([0, 0, 0.1, 0.5])),
        flushes=0 if is_quiet else float(rng.choice([0, 0, 0.1])),
        faults=0 if is_quiet else float(rng.choice([0, 0, 0.05])),
        lookup=bool(rng.integers(0, 4)),
    )


def make_case(seed: int) -> tuple[list[EngineRequest], Setup, dict[int, Answer]]:
    requests = make_requests(seed) if seed % 4 else make_long_requests(seed)
    return requests, make_setup(np.random.default_rng(seed), requests), right_answers(requests)


def run(seed: int) -> Setup:
    requests, setup, right = make_case(seed)
    check_all(requests, setup, right, seed)
    return setup
