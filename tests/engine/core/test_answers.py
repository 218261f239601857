"""On the fake model, answers depend on the request alone: not on batch, arrival, chunks, cache,
pool size or preemption. The naive model, one token at a time, says what is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.engine.names import LAST_TOKEN, POOLINGS
from sgc.runtime.engine.requests.request import (
    Commit,
    Embed,
    Generate,
    SamplingParams,
    Score,
    Stops,
)

SMALL = 61  # a small vocabulary, so that prompts, choices and generations often coincide


def _kinds(rng: np.random.Generator, letter) -> object:
    which = rng.integers(0, 9)
    if which == 0:
        return Commit()
    if which == 8:
        return Embed(str(rng.choice(POOLINGS)))
    if which <= 2:
        n = int(rng.integers(1, 5))
        return Score(
            tuple(tuple(rng.integers(3, 8, rng.integers(1, 5)).tolist()) for _ in range(n))
        )
    params = SamplingParams(
        temperature=float(rng.choice([0, 0.7, 1.3])),
        top_p=float(rng.choice([1, 0.9])),
        top_k=int(rng.choice([-1, 20])),
        min_p=float(rng.choice([0, 0.01])),
        frequency_penalty=float(rng.choice([0, 0, 0.5])),
        repetition_penalty=float(rng.choice([1, 1, 1.3])),
        seed=int(rng.integers(0, 4)),
    )
    stop = (letter(int(rng.integers(3, SMALL))),) if rng.integers(0, 3) == 0 else ()
    return Generate(
        max_tokens=int(rng.integers(1, 25)),
        params=params,
        min_tokens=int(rng.choice([0, 0, 4])),
        stop=Stops(stop),
        stop_ids=(1,),
    )


def make_requests(lab, seed: int, n: int = 24) -> list:
    """Prompts along a small tree, some equal, some prefixes of others."""
    rng = np.random.default_rng(seed)
    trunks = [rng.integers(3, SMALL, 30).tolist() for _ in range(2)]
    branches = [t[: rng.integers(5, 30)] + rng.integers(3, 8, 12).tolist() for t in trunks * 2]
    out = []
    for i in range(n):
        base = branches[rng.integers(0, len(branches))]
        tail = rng.integers(3, 8, rng.integers(0, 6)).tolist()
        tokens = base[: rng.integers(1, len(base) + 1)] + tail
        out.append(lab.request(i, tokens, _kinds(rng, lab.letter)))
    return out


def naive_answers(lab, requests: list) -> dict:
    naive = lab.Naive(SMALL)
    answers = {}
    for r in requests:
        if isinstance(r.kind, Generate):
            answers[r.id] = naive.generate(r.tokens, r.kind)
        elif isinstance(r.kind, Score):
            answers[r.id] = naive.score(r.tokens, r.kind)
        elif isinstance(r.kind, Embed):
            answers[r.id] = naive.embed(r.tokens, r.kind)
    return answers


def assert_right(requests: list, outcomes: dict, answers: dict) -> None:
    for r in requests:
        outcome = outcomes[r.id]
        assert outcome.last.error is None, outcome.last.error
        if isinstance(r.kind, Generate):
            assert outcome.ids == answers[r.id]
        elif isinstance(r.kind, Score):
            for got, expected in zip(outcome.last.choices, answers[r.id], strict=True):
                np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)
        elif isinstance(r.kind, Embed):
            assert outcome.last.embedding == answers[r.id]
        usage = outcome.last.usage
        assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens
        assert usage.cached_tokens >= 0
        assert usage.computed_tokens >= 0


@examples(20)
@given(
    seed=st.integers(0, 10**6),
    chunk=st.sampled_from([1, 2, 7, 64, 512]),
    max_running=st.sampled_from([1, 3, 256]),
    pool=st.sampled_from([90, 130, 4096]),
    per_step=st.sampled_from([None, 1, 5]),
    is_reversed=st.booleans(),
)
def test_answers_do_not_depend_on_how_they_are_computed(
    lab, seed, chunk, max_running, pool, per_step, is_reversed
) -> None:
    requests = make_requests(lab, seed)
    core = lab.make_core(pool=pool, vocab=SMALL, chunk_tokens=chunk, max_running=max_running)
    arriving = requests[::-1] if is_reversed else requests
    outcomes = lab.drive(core, arriving, per_step=per_step)
    assert_right(requests, outcomes, naive_answers(lab, requests))
    stats = core.stats()
    assert stats.running_requests == stats.waiting_requests == 0
    assert core.flush_cache() == stats.cached_pool_tokens
    assert core.stats().free_tokens == pool


def test_a_pool_of_a_tenth_of_the_working_set(lab) -> None:
    rng = np.random.default_rng(5)
    params = [SamplingParams(temperature=float(i % 2), seed=i) for i in range(40)]
    requests = [
        lab.request(i, rng.integers(3, SMALL, 60), Generate(40, params[i])) for i in range(40)
    ]
    working_set = sum(len(r.tokens) + 40 for r in requests)
    core = lab.make_core(pool=working_set // 10, vocab=SMALL, chunk_tokens=128)
    outcomes = lab.drive(core, requests)
    assert core.stats().preemptions > 0
    assert core.stats().evicted_tokens > 0
    assert_right(requests, outcomes, naive_answers(lab, requests))


def test_cache_off_is_an_engine_for_each_request(lab) -> None:
    requests = make_requests(lab, 3)
    together = lab.drive(lab.make_core(vocab=SMALL), requests)
    for r in requests:
        alone = lab.drive(lab.make_core(vocab=SMALL), [r])
        assert alone[r.id].answer == together[r.id].answer


def test_a_second_time_from_the_cache_is_the_same(lab) -> None:
    requests = make_requests(lab, 4)
    core = lab.make_core(vocab=SMALL)
    first, second = lab.drive(core, requests), lab.drive(core, requests)
    for r in requests:
        assert first[r.id].answer == second[r.id].answer
    assert all(
        second[r.id].last.usage.cached_tokens > 0 or len(r.tokens) == 1
        for r in requests
        if not isinstance(r.kind, Embed) or r.kind.pooling == LAST_TOKEN
    )


@pytest.mark.parametrize("budget", [1, 3, 100])
def test_scoring_choices_that_are_equal_or_prefixes_of_each_other(lab, budget) -> None:
    choices = ((5, 6, 7), (5, 6), (5, 6, 7), (8,), (5, 9), (5, 6, 7, 5, 5, 5), (8,))
    prompt = [3, 4, 5]
    core = lab.make_core(chunk_tokens=budget)
    outcome = lab.drive(core, [lab.request(1, prompt, Score(choices))])[1]
    expected = lab.Naive().score(prompt, Score(choices))
    for got, right in zip(outcome.last.choices, expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=0, atol=1e-9)
    n_trie = 5  # 5 6 7 5 5; after the last 5, and 9 and 8, no choice goes on
    assert core.stats().counters.positions_run == 3 + n_trie
    assert outcome.last.usage.prompt_tokens == 3 + n_trie
    assert core.stats().counters.steps == -(-(3 + n_trie) // budget)
    then = lab.drive(core, [lab.request(2, [*prompt, 5, 6, 7, 5, 5, 5], Commit())])[2]
    assert then.last.usage.computed_tokens == 1
