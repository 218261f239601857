"""Constraints in the engine's core, over a real vocabulary: what is generated satisfies them, and
depends on nothing but the request; what is forced costs no step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine.core.conftest import Outcome, drive
from engine.generation.conftest import Rig
from engine.generation.guided import (
    CONSTRAINTS,
    LENGTH,
    PROMPT,
    STOP,
    answers,
    assert_counted,
    is_valid,
    make_requests,
    said,
)
from other_caches import CACHES

from sgc.runtime.engine.requests.request import EngineRequest, Generate, SamplingParams


@pytest.fixture(scope="module")
def requests(rig: Rig) -> list[EngineRequest]:
    return make_requests(rig)


@pytest.fixture(scope="module")
def right(rig: Rig, requests: list[EngineRequest]) -> dict[int, tuple]:
    """Each asked alone, of an engine of its own."""
    return {r.id: answers(drive(rig.core(), [r]))[r.id] for r in requests}


# What comes out


@pytest.mark.sweep
@pytest.mark.parametrize("jumps", [True, False])
@pytest.mark.parametrize(("field", "text"), CONSTRAINTS, ids=lambda value: value[:20])
def test_a_text_that_ended_satisfies_its_constraint(rig: Rig, field, text, jumps) -> None:
    constraint = rig.compile(field, text)
    kinds = [
        Generate(60, SamplingParams(t, seed=seed), stop_ids=(rig.eos,), constraint=constraint)
        for seed, t in enumerate([0.0, 0.5, 1.0, 1.0, 1.0, 1.5, 1.5, 2.0])
    ]
    core = rig.core(jumps=jumps)
    outcomes = drive(core, [rig.request(i, PROMPT, kind) for i, kind in enumerate(kinds)])
    endings = [outcome.last.finish_reason for outcome in outcomes.values()]
    assert endings.count(STOP) >= 3
    for outcome in outcomes.values():
        assert outcome.last.error is None
        assert len(outcome.ids) <= 60
        if outcome.last.finish_reason == STOP:
            assert is_valid(field, text, said(rig, outcome)), said(rig, outcome)
        else:
            assert len(outcome.ids) == 60
    assert_counted(core, outcomes.values())


def test_the_requests_differ(rig: Rig, requests, right) -> None:
    assert len({answer[0] for answer in right.values()}) > 20
    assert {answer[1] for answer in right.values()} == {STOP, LENGTH}
    outcomes = [drive(rig.core(), [r])[r.id] for r in requests]
    assert sum(outcome.last.usage.forced_tokens > 0 for outcome in outcomes) > 10


@pytest.mark.sweep
@pytest.mark.parametrize("max_running", [1, 2, 5, 256])
def test_independent_of_the_batch(rig: Rig, requests, right, max_running) -> None:
    core = rig.core(max_running=max_running)
    outcomes = drive(core, requests)
    assert answers(outcomes) == right
    assert_counted(core, outcomes.values())


@pytest.mark.parametrize("per_step", [None, 1, 3])
def test_independent_of_the_order_of_arrival(rig: Rig, requests, right, per_step) -> None:
    order = np.random.default_rng(per_step).permutation(len(requests))
    assert answers(drive(rig.core(), [requests[i] for i in order], per_step=per_step)) == right


@pytest.mark.sweep
@pytest.mark.parametrize("chunk", [1, 3, 7, 64])
def test_independent_of_chunks(rig: Rig, requests, right, chunk) -> None:
    core = rig.core(chunk_tokens=chunk)
    outcomes = drive(core, requests, per_step=2)
    assert answers(outcomes) == right
    assert_counted(core, outcomes.values())


@pytest.mark.sweep
@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("cache", CACHES)
def test_independent_of_the_cache(rig: Rig, requests, right, cache, shares) -> None:
    core = rig.core(cache=cache, shares_in_batch=shares, max_running=3)
    outcomes = drive(core, requests)
    assert answers(outcomes) == right
    assert (core.stats().counters.cached_tokens > 0) == (cache != "none")
    assert_counted(core, outcomes.values())


@pytest.mark.parametrize("cache", CACHES)
def test_independent_of_a_tight_pool(rig: Rig, requests, right, cache) -> None:
    longest = max(len(r.tokens) + 41 for r in requests)
    core = rig.core(pool=longest + 40, cache=cache, chunk_tokens=16)
    outcomes = drive(core, requests)
    assert answers(outcomes) == right
    stats = core.stats()
    assert stats.preemptions > 3
    assert cache == "none" or stats.evicted_tokens > 0
    assert_counted(core, outcomes.values())
    core.flush_cache()
    assert core.stats().free_tokens == longest + 40


def test_independent_of_what_is_cached_already(rig: Rig, requests, right) -> None:
    core = rig.core()
    for _ in range(2):
        assert answers(drive(core, requests)) == right


# Jumps


class Breaking:
    """A constraint that fails where it is told to."""

    def __init__(self, inner: Any, method: str, at: int) -> None:
        self._inner, self._method, self._at = inner, method, at

    def start(self, jumps: bool) -> Any:
        return _BreakingGuide(self._inner.start(jumps), self._method, self._at)


class _BreakingGuide:
    def __init__(self, inner: Any, method: str, at: int) -> None:
        self._inner, self._method, self._left = inner, method, at
        self._is_broken = False

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._left -= 1
            self._is_broken = self._is_broken or self._left < 0
        return getattr(self._inner, name)

    def write_mask(self, row: Any) -> None:
        _ = self.__getattr__("write_mask")
        if not self._is_broken:
            self._inner.write_mask(row)

    def check(self) -> None:
        if self._is_broken:
            raise ValueError("the constraint failed during generation: too large")
        self._inner.check()


@pytest.mark.parametrize("method", ["take", "write_mask"])
def test_a_library_that_gives_up_ends_one_request(rig: Rig, method) -> None:
    inner = rig.compile("regex", "[a-z]{9,}")
    whole = Generate(20, SamplingParams(1.0), constraint=inner)
    core = rig.core()
    broken = [
        rig.request(
            i, PROMPT, Generate(20, SamplingParams(1.0), constraint=Breaking(inner, method, i))
        )
        for i in range(1, 6)
    ]
    outcomes = drive(core, [rig.request(0, PROMPT, whole), *broken])
    assert outcomes[0].answer == rig.one(rig.core(), PROMPT, whole).answer
    for i in range(1, 6):
        assert "failed during generation" in outcomes[i].last.error.message
    core.flush_cache()
    assert core.stats().free_tokens == 4096


# Cancels


@pytest.mark.parametrize("pool", [160, 4096])
def test_cancels_at_every_stage_disturb_no_one(rig: Rig, requests, right, pool) -> None:
    rng = np.random.default_rng(pool)
    for round_ in range(4):
        core = rig.core(pool=pool, chunk_tokens=(5, 64)[round_ % 2], max_running=6)
        todo = [requests[i] for i in rng.permutation(len(requests))]
        gone: set[int] = set()
        outcomes = {r.id: Outcome() for r in todo}
        while todo or core.has_work:
            for r in todo[:2]:
                core.submit(r)
                if rng.random() < 0.1:  # before its first step
                    core.cancel(r.id)
                    gone.add(r.id)
            del todo[:2]
            if rng.random() < 0.3:
                i = int(rng.integers(0, len(requests)))
                if outcomes[i].last is None and all(r.id != i for r in todo):
                    core.cancel(i)
                    core.check()
                    gone.add(i)
            for update in core.step():
                assert update.id not in gone
                outcomes[update.id].ids += update.new_ids
                if update.final:
                    outcomes[update.id].last = update
        assert len(gone) > 3
        for i, outcome in outcomes.items():
            if i not in gone:
                assert outcome.answer == right[i]
        assert core.flush_cache() >= 0
        assert core.stats().free_tokens == pool


def test_a_step_that_fails_leaves_no_mask_behind(rig: Rig, requests, right) -> None:
    class Failing:
        def __init__(self, model: Any) -> None:
            self._model, self._n = model, 0

        def run(self, batch: Any) -> Any:
            self._n += 1
            if self._n == 4:
                raise RuntimeError("out of luck")
            return self._model.run(batch)

    core = rig.core(forward=Failing(rig.model(4096)), max_running=4)
    for r in requests:
        core.submit(r)
    outcomes = {r.id: Outcome() for r in requests}
    while core.has_work:
        try:
            updates = core.step()
        except RuntimeError:
            core.fail("a step failed")
            continue
        for update in updates:
            outcomes[update.id].ids += update.new_ids
            if update.final:
                outcomes[update.id].last = update
    failed = [i for i, outcome in outcomes.items() if outcome.last.error is not None]
    assert 0 < len(failed) <= 4
    for i, outcome in outcomes.items():
        if i not in failed:
            assert outcome.answer == right[i]
