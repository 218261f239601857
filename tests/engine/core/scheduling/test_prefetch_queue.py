"""Prefetches: computed when nobody waits, and in nobody's way. Everything is counted in steps."""

from __future__ import annotations

import numpy as np
import pytest
import virtual_clock as clock
from engine.core.conftest import make_core, make_model, request
from engine.core.fuzz.engine_requests import VOCAB as SMALL
from engine.core.fuzz.engine_requests import make_long_requests, make_requests, right_answers
from other_caches import CACHES

from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import Commit, EngineRequest, Generate, Prefetch, Update
from sgc.runtime.engine.scheduling.prefetch_queue import MAX_WAITING, SHARE

CHUNK = 64  # of a prefetch
LONG = list(range(10, 310))  # five chunks


class Steps:
    """An engine's steps, one by one: what each ran, and what was said so far."""

    def __init__(self, **options) -> None:
        options = {"pool": 4096, "chunk_tokens": SHARE * CHUNK} | options
        self._model = make_model(options["pool"])
        self.core = make_core(forward=self, **options)
        self.sizes: list[int] = []
        self.said: dict[int, Update] = {}

    def run(self, batch):
        self.sizes.append(batch.n_tokens)
        return self._model.run(batch)

    def submit(self, id: int, tokens, kind) -> None:
        self.core.submit(request(id, tokens, kind))

    def step(self, n: int = 1) -> None:
        for _ in range(n):
            self.said |= {update.id: update for update in self.core.step() if update.final}

    def until_said(self, id: int) -> int:
        """How many steps it takes."""
        for n in range(1, 1000):
            self.step()
            if id in self.said:
                return n
        raise AssertionError("the engine does not come to an end")


def alone(tokens, kind, before=()) -> int:
    """The steps that a request takes on an engine that has nothing else to do."""
    steps = Steps()
    if before:
        steps.submit(0, before, Commit())
        steps.until_said(0)
    steps.submit(1, tokens, kind)
    return steps.until_said(1)


def test_an_idle_engine_computes_it_and_the_request_finds_it_cached() -> None:
    steps = Steps()
    steps.submit(1, LONG, Prefetch())
    assert steps.until_said(1) == 5
    assert max(steps.sizes) <= CHUNK
    assert (steps.said[1].usage.computed_tokens, steps.said[1].usage.cached_tokens) == (300, 0)
    steps.submit(2, [*LONG, 5, 6], Generate(1))
    assert steps.until_said(2) == 1
    assert (steps.said[2].usage.cached_tokens, steps.said[2].usage.computed_tokens) == (300, 2)
    stats = steps.core.stats()
    assert (stats.prefetches, stats.prefetched_tokens, stats.dropped_prefetches) == (1, 300, 0)
    assert stats.counters.computed_tokens == 2
    assert stats.counters.positions_run == sum(steps.sizes) == 302


@pytest.mark.parametrize("n_steps", [0, 1, 2, 4])
def test_a_request_that_comes_meanwhile_takes_as_many_steps_as_alone(n_steps: int) -> None:
    other, kind = list(range(400, 500)), Generate(20)
    steps = Steps()
    steps.submit(1, LONG, Prefetch())
    steps.step(n_steps)
    steps.submit(2, other, kind)
    n_before = len(steps.sizes)
    assert steps.until_said(2) == alone(other, kind)
    # Its prompt is computed alone; then one step with a chunk, unless one was under way before.
    own = [100] + 19 * [1]
    held = [size - n for size, n in zip(steps.sizes[n_before:], own, strict=True)]
    assert sum(size > 0 for size in held) == (n_steps == 0)
    assert held[0] == 0
    assert max(held) <= CHUNK
    steps.until_said(1)
    assert steps.said[1].usage.computed_tokens == 300


@pytest.mark.parametrize("n_steps", [0, 1, 3])
def test_a_request_for_the_same_prompt_goes_on_from_what_is_there(n_steps: int) -> None:
    steps = Steps()
    steps.submit(1, LONG, Prefetch())
    steps.step(n_steps)
    steps.submit(2, [*LONG, 5, 6], Generate(2))
    steps.until_said(2)
    assert steps.said[2].usage.cached_tokens == CHUNK * n_steps
    while steps.core.has_work:
        steps.step()
    assert sum(steps.sizes) == 302 + 1  # no position was run twice
    assert not steps.said[1].gave_way


def test_it_waits_while_others_wait_or_compute_their_prompts() -> None:
    steps = Steps(max_running=1)
    steps.submit(1, LONG, Prefetch())
    for id in (2, 3):
        steps.submit(id, [400 + id, *range(500, 600)], Generate(3))
    steps.until_said(2)
    assert steps.core.stats().prefetched_tokens == 0
    steps.until_said(3)
    assert steps.core.stats().prefetched_tokens <= CHUNK


def test_who_needs_the_room_gets_it_at_once() -> None:
    steps = Steps(pool=320)
    steps.submit(1, LONG, Prefetch())
    steps.step(3)
    steps.submit(2, list(range(400, 690)), Generate(5))
    n = alone(list(range(400, 690)), Generate(5))
    assert steps.until_said(2) == n
    while steps.core.has_work:
        steps.step()
    assert steps.said[1].gave_way, "what it had computed was evicted"
    assert steps.core.stats().dropped_prefetches == 1


def test_room_is_made_only_of_what_nobody_has_used_since() -> None:
    steps = Steps(pool=400)
    old, used = list(range(400, 550)), list(range(600, 750))
    for id, tokens in enumerate((old, used)):
        steps.submit(id, tokens, Commit())
        steps.until_said(id)
    steps.submit(2, LONG, Prefetch())
    steps.submit(3, used, Commit())
    while steps.core.has_work:
        steps.step()
    cached = {n: steps.core.cache.match(np.array(t), b"").length for n, t in enumerate((old, used))}
    assert cached == {0: 0, 1: 150}
    assert steps.said[2].gave_way
    assert steps.said[2].usage.prompt_tokens == steps.core.stats().prefetched_tokens == 250


def test_the_oldest_gives_way_when_there_are_too_many() -> None:
    steps = Steps()
    for id in range(MAX_WAITING + 2):
        steps.submit(id, [20 + id, 1, 2], Prefetch())
    assert steps.core.stats().waiting_prefetches == MAX_WAITING
    while steps.core.has_work:
        steps.step()
    gave_way = [id for id, update in steps.said.items() if update.gave_way]
    assert sorted(gave_way) == [0, 1]
    assert len(steps.said) == MAX_WAITING + 2
    assert steps.core.stats().prefetched_tokens == 3 * MAX_WAITING


def test_one_that_is_cancelled_holds_nothing() -> None:
    steps = Steps()
    steps.submit(1, LONG, Prefetch())
    steps.step(2)
    steps.core.cancel(1)
    assert not steps.core.has_work
    assert steps.core.flush_cache() == 2 * CHUNK
    assert steps.core.stats().free_tokens == 4096


def test_refusals() -> None:
    steps = Steps()
    steps.submit(1, LONG, Prefetch())
    steps.submit(1, LONG, Prefetch())
    steps.submit(2, [5000], Prefetch())
    steps.submit(3, [], Prefetch())
    steps.step()
    assert "in use" in steps.said[1].error.message
    assert "vocabulary" in steps.said[2].error.message
    assert steps.said[3].error is None


@pytest.mark.slow
@pytest.mark.parametrize("rate", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_the_slowest_of_the_others_are_slower_by_at_most_a_chunk(rate: float) -> None:
    """On a virtual clock, with prompts to prefetch at every moment."""
    rng = np.random.default_rng(rate)
    arrivals = clock.poisson(1, n=150, rate=rate, n_tokens=48, max_tokens=16)
    prompts = [tuple(rng.integers(3, clock.VOCAB, 4096).tolist()) for _ in range(40)]
    alone, _ = clock.latencies(arrivals, [], chunk_tokens=SHARE * CHUNK)
    beside, n_prefetched = clock.latencies(arrivals, prompts, chunk_tokens=SHARE * CHUNK)
    assert n_prefetched > 2 * 4096
    chunk_s = clock.STEP_S + clock.POSITION_S * CHUNK
    for what, times in alone.items():
        for percent in (50, 99):
            growth_s = np.percentile(beside[what], percent) - np.percentile(times, percent)
            assert growth_s <= chunk_s + 1e-9, (what, percent)


class Fault(RuntimeError):
    pass


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(s, marks=pytest.mark.slow)
                                              for s in range(5, 400))])  # fmt: skip
def test_answers_and_waits_are_those_without_them(seed: int) -> None:
    """Random requests and prefetches of their prompts, in small pools, with cancels and faults."""
    rng = np.random.default_rng(seed)
    requests = make_long_requests(seed) if seed % 3 == 0 else make_requests(seed)
    hints = [
        EngineRequest(1000 + r.id, np.concatenate([r.tokens, [7, 8]])[: rng.integers(1, 60)],
                      Prefetch(), r.namespace)
        for r in requests
    ]  # fmt: skip
    todo = [each for pair in zip(hints, requests, strict=True) for each in pair]
    faults, cancels = rng.choice([0, 0.1], 2)
    model = make_model(160, SMALL)

    class Failing:
        def run(self, batch):
            self._fail()
            return model.run(batch)

        def hidden(self, batch):
            self._fail()
            return model.hidden(batch)

        def _fail(self):
            if rng.random() < faults:
                raise Fault

    core = make_core(
        forward=Failing(), pool=160, vocab=SMALL, chunk_tokens=int(rng.integers(1, 40)),
        policy=str(rng.choice(POLICIES)), cache=str(rng.choice(["radix", *CACHES])),
        max_running=int(rng.choice([1, 3, 256])),
    )  # fmt: skip
    said: dict[int, list[int]] = {each.id: [] for each in todo}
    ended: dict[int, Update] = {}
    held = dict.fromkeys(said, 0)
    live: set[int] = set()
    while todo or core.has_work:
        for each in todo[: rng.integers(0, 4)]:
            core.submit(each)
            live.add(each.id)
            held[each.id] += core.prefetches.has_run
            todo.remove(each)
        if rng.random() < cancels and live:
            core.cancel(one := sorted(live)[0])
            live.discard(one)
        try:
            updates = core.step()
        except Fault:
            core.fail("a fault")
            core.check()
            continue
        for id in live if core.prefetches.has_run else ():
            held[id] += 1
        for update in updates:
            said[update.id] += update.new_ids
            if update.final:
                ended[update.id] = update
                live.discard(update.id)
    assert max(held[r.id] for r in requests) <= 1
    right = right_answers(requests)
    for r in requests:
        if r.id in ended and ended[r.id].error is None:
            assert tuple(said[r.id]) == right[r.id].ids
    stats = core.stats()
    assert stats.prefetches + stats.waiting_prefetches <= len(hints)
    assert core.flush_cache() == 160 - stats.free_tokens
    assert core.stats().free_tokens == 160
