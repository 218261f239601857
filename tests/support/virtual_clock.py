"""An engine core on a virtual clock: a step takes a fixed time, plus a time per position.

It is for tests of order and waiting, whose results must not depend on the machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.requests.request import EngineRequest, Generate, Prefetch, State
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 512
STEP_S = 0.030  # about a model of 0.5 billion parameters on two cores
POSITION_S = 0.0004


@dataclass(frozen=True)
class Arrival:
    at_s: float
    tokens: tuple[int, ...]
    max_tokens: int
    kind: str


@dataclass
class Run:
    """waits_s: from arrival to admission, by kind. passed: for each request, the number of
    admissions since its arrival, its own included, and the bound."""

    waits_s: dict[str, list[float]] = field(default_factory=dict)
    passed: list[tuple[int, int]] = field(default_factory=list)
    seconds: float = 0.0
    hit_rate: float = 0.0

    def percentile_s(self, kind: str, percent: float) -> float:
        return float(np.percentile(self.waits_s[kind], percent))


def run(arrivals: Sequence[Arrival], *, pool: int, grace: int, **options: object) -> Run:
    """Runs all arrivals to their end. grace: the constant in the bound of `Run.passed`."""
    core = EngineCore(
        FakeModel(pool, VOCAB),
        pool_tokens=pool,
        max_context=pool,
        vocab_size=VOCAB,
        **options,  # type: ignore[arg-type]
    )
    return _Driver(core, arrivals, grace).run()


class _Driver:
    def __init__(self, core: EngineCore, arrivals: Sequence[Arrival], grace: int) -> None:
        self._core, self._grace = core, grace
        self._todo = [(arrival.at_s, i, arrival) for i, arrival in enumerate(arrivals)]
        heapq.heapify(self._todo)
        self._now = 0.0
        self._n_admitted = 0
        self._came: dict[int, tuple[Arrival, int, int]] = {}  # admissions and waiting at arrival
        self._result = Run()

    def run(self) -> Run:
        admit = self._core.scheduler.admit
        self._core.scheduler.admit = lambda now: self._note(admit(now))  # type: ignore[method-assign]
        while self._todo or self._core.has_work:
            if not self._core.has_work:
                self._now = max(self._now, self._todo[0][0])
            self._take_in()
            before = self._core.stats().counters.positions_run
            self._core.step()
            n_run = self._core.stats().counters.positions_run - before
            self._now += STEP_S + POSITION_S * n_run
        sums = self._core.stats().counters
        self._result.seconds = self._now
        self._result.hit_rate = sums.cached_tokens / sums.prompt_tokens
        return self._result

    def _take_in(self) -> None:
        new = []
        while self._todo and self._todo[0][0] <= self._now:
            _, i, arrival = heapq.heappop(self._todo)
            kind = Generate(arrival.max_tokens)
            self._core.submit(EngineRequest(i, np.array(arrival.tokens, np.int64), kind))
            new.append((i, arrival))
        n_waiting = len(self._core.scheduler.waiting)
        for i, arrival in new:
            self._came[i] = (arrival, self._n_admitted, n_waiting)

    def _note(self, admitted: list) -> list:  # type: ignore[type-arg]
        for work in admitted:
            assert work.state is State.RUNNING
            if work.request.id not in self._came:
                continue  # resumed after a preemption
            arrival, n_before, n_waiting = self._came.pop(work.request.id)
            self._result.waits_s.setdefault(arrival.kind, []).append(self._now - arrival.at_s)
            allowed = 2 * n_waiting + self._grace
            self._n_admitted += 1
            self._result.passed.append((self._n_admitted - n_before, allowed))
        return admitted


def flood(
    seed: int, *, n: int, rate: float, n_groups: int = 1, cold: float = 0.05
) -> list[Arrival]:
    """Arrivals of requests that share hot prefixes of 512 tokens, and of a few cold ones."""
    rng = np.random.default_rng(seed)
    hot = [tuple(rng.integers(3, VOCAB, 512).tolist()) for _ in range(n_groups)]
    at_s = np.cumsum(rng.exponential(1 / rate, n))
    arrivals = []
    for t in at_s.tolist():
        is_cold = rng.random() < cold
        own = tuple(rng.integers(3, VOCAB, 528 if is_cold else 16).tolist())
        tokens = own if is_cold else (*hot[rng.integers(n_groups)], *own)
        arrivals.append(Arrival(t, tokens, 16, "cold" if is_cold else "hot"))
    return arrivals


def latencies(
    arrivals: Sequence[Arrival], prefetched: Sequence[tuple[int, ...]], **options: object
) -> tuple[dict[str, list[float]], int]:
    """Latencies of all arrivals while the engine always has a prompt to prefetch: seconds to the
    first token, between tokens, and to the end; and the positions that it ran for prefetches."""
    core = EngineCore(
        FakeModel(1 << 16, VOCAB),
        pool_tokens=1 << 16,
        max_context=1 << 15,
        vocab_size=VOCAB,
        **options,  # type: ignore[arg-type]
    )
    todo, ahead = list(reversed(arrivals)), list(reversed(prefetched))
    told: dict[int, list[float]] = {}
    now = 0.0
    while todo or len(told) < len(arrivals) or core.has_work:
        if ahead and core.stats().waiting_prefetches == 0:
            tokens = np.array(ahead.pop(), np.int64)
            core.submit(EngineRequest(1_000_000 + len(ahead), tokens, Prefetch()))
        if not core.has_work:
            now = max(now, todo[-1].at_s)
        while todo and todo[-1].at_s <= now:
            arrival = todo.pop()
            told[len(told)] = [arrival.at_s]
            tokens = np.array(arrival.tokens, np.int64)
            core.submit(EngineRequest(len(told) - 1, tokens, Generate(arrival.max_tokens)))
        before = core.stats().counters.positions_run
        updates = core.step()
        now += STEP_S + POSITION_S * (core.stats().counters.positions_run - before)
        for update in updates:
            if update.id in told and (update.new_ids or update.final):
                told[update.id].append(now)
    times = list(told.values())
    found = {
        "first": [each[1] - each[0] for each in times],
        "between": [gap for each in times for gap in np.diff(each[1:]).tolist()],
        "whole": [each[-1] - each[0] for each in times],
    }
    return found, core.stats().prefetched_tokens


def poisson(seed: int, *, n: int, rate: float, n_tokens: int, max_tokens: int) -> list[Arrival]:
    """Poisson arrivals of requests that share nothing."""
    rng = np.random.default_rng(seed)
    at_s = np.cumsum(rng.exponential(1 / rate, n)).tolist()
    prompts = rng.integers(3, VOCAB, (n, n_tokens)).tolist()
    return [Arrival(t, tuple(p), max_tokens, "own") for t, p in zip(at_s, prompts, strict=True)]
