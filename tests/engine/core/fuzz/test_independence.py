"""Outputs depend on the request alone. The same requests are run with one thing varied at a time
and everything checked after each step: each answer is the naive model's, which knows neither
batch nor cache."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from engine.core.fuzz.engine_fuzz import check_all
from engine.core.fuzz.engine_play import AMPLE, Setup, play
from engine.core.fuzz.engine_requests import make_long_requests, make_requests, need, right_answers
from other_caches import CACHES
from tests_support import one_in

from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import Commit, Embed, EngineRequest, Generate, Score

SEEDS = range(6)
each_seed = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])]
)
asked = cache(make_requests)


@cache
def right(seed: int) -> dict:
    return right_answers(asked(seed))


def check(seed: int, setup: Setup, requests: list[EngineRequest] | None = None):
    return check_all(requests or asked(seed), setup, right(seed), seed)


def tight(seed: int) -> int:
    """The smallest pool that can hold each request."""
    return max(map(need, asked(seed)))


def test_the_requests_are_of_all_kinds_and_their_answers_differ() -> None:
    kinds = [r.kind for seed in SEEDS for r in asked(seed)]
    assert {type(kind) for kind in kinds} == {Generate, Score, Commit, Embed}
    generates = [kind for kind in kinds if isinstance(kind, Generate)]
    assert any(kind.params.has_penalties for kind in generates)
    assert any(kind.stop for kind in generates)
    endings = {answer.ending[0] for seed in SEEDS for answer in right(seed).values()}
    assert len(endings) == 3
    said = [answer.ids for seed in SEEDS for answer in right(seed).values() if answer.ids]
    assert len(set(said)) > len(said) / 2


@each_seed
def test_independent_of_who_else_is_in_the_batch(seed) -> None:
    for max_running in (1, 2, 7):
        check(seed, Setup(max_running=max_running))
    for r in asked(seed)[:6]:
        check(seed, Setup(), [r])


@each_seed
def test_independent_of_the_order_and_time_of_arrival(seed) -> None:
    shuffled = list(np.random.default_rng(seed).permutation(len(asked(seed))))
    for order in (range(len(asked(seed)))[::-1], shuffled):
        for per_step in (None, 1, 4):
            check(seed, Setup(per_step=per_step), [asked(seed)[i] for i in order])


@each_seed
def test_independent_of_the_chunks_that_prompts_are_cut_in(seed) -> None:
    for chunk in (1, 2, 3, 5, 8, 13, 30, 64):
        check(seed, Setup(chunk=chunk, per_step=2))


@pytest.mark.parametrize("kind", CACHES)
@each_seed
def test_independent_of_the_cache(seed, kind) -> None:
    for shares in (True, False):
        played = check(seed, Setup(cache=kind, shares_in_batch=shares, per_step=1))
        n_cached = played.core.stats().counters.cached_tokens
        assert (n_cached > 0) == (kind != "none")


@each_seed
def test_tree_and_list_find_the_same_prefixes(seed) -> None:
    """Each request on its own, so that both know the same when it comes."""
    found = {}
    for kind in ("radix", "list"):
        played = check(seed, Setup(cache=kind, max_running=1, policy="fcfs"))
        found[kind] = [o.last.usage.cached_tokens for o in played.outcomes.values()]
    assert found["radix"] == found["list"]
    assert sum(found["radix"]) > 0


@pytest.mark.parametrize("kind", ["radix", "list"])
@each_seed
def test_independent_of_what_is_in_the_cache_already(seed, kind) -> None:
    """Asked a second time, and with the cache flushed now and then."""
    again = [replace(r, id=r.id + 100) for r in asked(seed)]
    answers = {**right(seed), **{i + 100: answer for i, answer in right(seed).items()}}
    check_all([*asked(seed), *again], Setup(cache=kind, per_step=1), answers, seed)
    check(seed, Setup(cache=kind, per_step=1, flushes=0.3))


@pytest.mark.parametrize("lookup", [True, False])
@each_seed
def test_independent_of_guesses(seed, lookup) -> None:
    """Asked twice, so that guesses from the tree are right, too."""
    again = [replace(r, id=r.id + 100) for r in asked(seed)]
    answers = {**right(seed), **{i + 100: answer for i, answer in right(seed).items()}}
    n_accepted = n_refused = 0
    for setup in (
        Setup(max_running=3, per_step=1, lookup=lookup),
        Setup(max_running=1, pool=tight(seed), lookup=lookup),
        Setup(pool=tight(seed) + 9, chunk=7, cancels=0.1, lookup=lookup),
    ):
        counters = check_all([*asked(seed), *again], setup, answers, seed).core.stats().counters
        n_accepted += counters.accepted_tokens
        n_refused += counters.speculated_tokens
    assert (n_accepted > 1) == (n_refused > 1) == lookup


@pytest.mark.parametrize("policy", POLICIES)
@each_seed
def test_independent_of_the_policy(seed, policy) -> None:
    for pool in (tight(seed), AMPLE):
        check(seed, Setup(policy=policy, pool=pool, max_running=3, per_step=3))


@pytest.mark.parametrize("kind", CACHES)
@each_seed
def test_independent_of_the_size_of_the_pool(seed, kind) -> None:
    for more in (0, 1, 17, 60):
        played = check(seed, Setup(cache=kind, pool=tight(seed) + more, chunk=16))
        assert kind == "none" or played.core.stats().evicted_tokens > 0


@cache
def long_ones() -> tuple[list[EngineRequest], dict]:
    requests = make_long_requests(5)
    return requests, right_answers(requests)


@pytest.mark.parametrize(("policy", "kind"), one_in(3, POLICIES, CACHES))
def test_independent_of_preemption_in_a_pool_of_a_tenth(policy, kind) -> None:
    """With draws, penalties and stops, whose state must outlive it."""
    requests, answers = long_ones()
    setup = Setup(pool=sum(map(need, requests)) // 10, policy=policy, cache=kind, per_step=3)
    played = check_all(requests, setup, answers)
    assert played.core.stats().preemptions > 3


@each_seed
def test_independent_of_others_being_cancelled(seed) -> None:
    """Running, waiting or following another; and nothing of theirs is left behind."""
    n_cancelled = 0
    for i, pool in enumerate((tight(seed), AMPLE, AMPLE)):
        setup = Setup(pool=pool, cancels=0.5, per_step=(None, None, 2)[i], chunk=7)
        n_cancelled += len(check(seed, setup).cancelled)
    assert n_cancelled > 5


@each_seed
def test_independent_of_steps_that_failed(seed) -> None:
    """Requests of other batches go on as if nothing had been."""
    played = check(seed, Setup(faults=0.1, max_running=2, per_step=1))
    assert 0 < len(played.failed) < len(asked(seed))


def test_independent_of_the_namespaces_of_others() -> None:
    """They share nothing, not even while they run together."""
    tokens = np.arange(3, 33)
    names = (b"one", b"two", b"one", b"three")
    requests = [EngineRequest(i, tokens, Generate(5), name) for i, name in enumerate(names)]
    played = play(requests, Setup())
    shared = [played.outcomes[i].last.usage.cached_tokens for i in range(4)]
    assert shared == [0, 0, 29, 0]
    assert len({tuple(outcome.ids) for outcome in played.outcomes.values()}) == 1
