"""Joined contexts: parts of a prompt that are encoded side by side (`requests/joined.py`)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from engine.core.conftest import Naive, drive, make_core, make_model
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.joined import Join, Part, shift_of
from sgc.runtime.engine.requests.request import (
    Commit,
    EngineRequest,
    Generate,
    LogprobsAsked,
    Prefetch,
    Score,
)
from sgc.runtime.engine.scheduling.gathers import parts_of, settled

VOCAB = 61
POOL = 4096


class NaiveJoined(Naive):
    """Each part in a run of its own, and its numbers copied."""

    joins: tuple[Join, ...] = ()

    def logits(self, tokens):
        n = len(tokens)
        self._model._prefix = self._numbers(np.asarray(tokens), self.joins)
        at = n - 1
        return self._run(tokens, at, shift_of(self.joins))

    def _run(self, tokens, start, shift):
        n = len(tokens)
        row = Row(np.asarray(tokens[start:]), start, np.arange(n), np.array([n - start - 1]), shift)
        return self._model.run(flatten([row]))

    def _numbers(self, tokens, joins):
        found = np.zeros(len(tokens), np.uint64)
        end = 0
        if joins:
            start, end = joins[-1].start, joins[-1].end
            parts = [
                self._numbers(each.tokens, each.joins) for each in parts_of(tokens[:end], joins)
            ]
            found[:end] = np.concatenate([parts[0][:start], *(part[start:] for part in parts)])
        self._model._prefix = found
        if end < len(tokens):
            self._run(tokens, end, shift_of(joins))
        return self._model._prefix


def core_of(pool: int = POOL, **options):
    model = make_model(pool, VOCAB)
    return make_core(pool=pool, vocab=VOCAB, forward=model, pages=model, **options)


def random_joins(rng, start: int, end: int, depth: int = 0) -> tuple[Join, ...]:
    """Of tokens `start` to `end`, some of them within parts of others."""
    joins = []
    while end - start > 4 and rng.random() < 0.8:
        first = int(rng.integers(start, end - 2))
        last = int(rng.integers(first + 1, end + 1))
        cuts = {int(i) for i in rng.integers(first + 1, last + 1, 3)} | {last}
        bounds = [first, *sorted(cuts)]
        parts = tuple(
            Part(b, random_joins(rng, a, b, depth + 1) if depth < 2 else ())
            for a, b in pairwise(bounds)
        )
        joins.append(Join(first, parts))
        start = last
    return tuple(joins)


def random_requests(seed: int, n: int = 12) -> list[EngineRequest]:
    rng = np.random.default_rng(seed)
    trunks = [rng.integers(3, VOCAB, 40) for _ in range(2)]
    shapes = [random_joins(rng, 0, int(rng.integers(5, 40))) for _ in range(3)]
    requests = []
    for i in range(n):
        joins = shapes[rng.integers(0, 3)]
        n_least = joins[-1].end if joins else 1
        tokens = trunks[rng.integers(0, 2)][: rng.integers(n_least, 41)]
        kinds = [Commit(), Score(((3, 4), (3, 5, 6), (7,))), Generate(6), Generate(12)]
        kind = kinds[rng.integers(0, 4)]
        requests.append(EngineRequest(i, tokens, kind, b"ab"[: rng.integers(1, 3)], joins=joins))
    return requests


def assert_right(requests, outcomes, pool) -> None:
    for request in requests:
        naive, last = NaiveJoined(VOCAB), outcomes[request.id].last
        naive.joins = settled(request, pool).joins
        assert last.error is None
        if isinstance(request.kind, Generate):
            assert outcomes[request.id].ids == naive.generate(request.tokens, request.kind)
        elif isinstance(request.kind, Score):
            for got, right in zip(
                last.choices, naive.score(request.tokens, request.kind), strict=True
            ):
                np.testing.assert_allclose(got, right, rtol=0, atol=1e-9)
        assert last.usage.prompt_tokens == last.usage.cached_tokens + last.usage.computed_tokens


@examples(60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([64, 100, 150, 250, POOL]),
    st.sampled_from([8, 64]),
    st.sampled_from(POLICIES),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([1, 3, 256]),
)
def test_answers_are_those_of_parts_run_alone(seed, pool, chunk, policy, per_step, max_running):
    requests = random_requests(seed)
    core = core_of(pool, chunk_tokens=chunk, policy=policy, max_running=max_running)
    outcomes = drive(core, requests, per_step=per_step)
    assert_right(requests, outcomes, pool)
    core.flush_cache()
    core.check()
    assert core.stats().free_tokens == pool


JOINS = (Join(10, (Part(20), Part(26), Part(40))),)
TOKENS = np.random.default_rng(0).integers(3, VOCAB, 45)


def test_what_parts_have_computed_is_not_computed_again():
    core = core_of()
    alone = [
        EngineRequest(i, each.tokens, Commit()) for i, each in enumerate(parts_of(TOKENS, JOINS))
    ]
    drive(core, alone)
    n_before = core.stats().counters.positions_run
    assert n_before == 10 + 10 + 6 + 14
    outcome = drive(core, [EngineRequest(9, TOKENS, Generate(1), joins=JOINS)])[9]
    assert core.stats().counters.positions_run - n_before == 5
    assert outcome.last.usage.cached_tokens == 40
    again = drive(core, [EngineRequest(9, TOKENS, Generate(1), joins=JOINS)])[9]
    assert again.ids == outcome.ids
    assert again.last.usage.cached_tokens == 44


def test_parts_that_were_not_computed_are_counted_for_the_request():
    core = core_of()
    outcome = drive(core, [EngineRequest(9, TOKENS, Generate(1), joins=JOINS)])[9]
    assert core.stats().counters.positions_run == outcome.last.usage.computed_tokens == 45


def test_joined_and_plain_prompts_share_nothing_that_differs():
    core = core_of()
    joined, plain = (
        EngineRequest(i, TOKENS, Generate(8), joins=j) for i, j in ((0, JOINS), (1, ()))
    )
    both = drive(core, [joined, plain])
    alone = [drive(core_of(), [each])[each.id] for each in (joined, plain)]
    assert [both[0].ids, both[1].ids] == [each.ids for each in alone]
    assert both[0].ids != both[1].ids


def test_without_pages_to_copy_a_joined_prompt_is_computed_as_a_plain_one():
    core = make_core(vocab=VOCAB)
    found = drive(core, [EngineRequest(0, TOKENS, Generate(8), joins=JOINS)])[0]
    assert found.ids == Naive(VOCAB).generate(TOKENS, Generate(8))


@pytest.mark.parametrize("n_steps", range(1, 8))
def test_a_request_that_is_cancelled_while_its_parts_run_leaves_nothing(n_steps):
    core = core_of(chunk_tokens=8)
    for i in range(2):
        core.submit(EngineRequest(i, TOKENS, Generate(8), joins=JOINS))
    core.submit(EngineRequest(2, TOKENS[::-1].copy(), Generate(8), joins=JOINS))
    for _ in range(n_steps):
        core.step()
    core.cancel(0)
    core.cancel(2)
    n = 0
    while core.has_work and n < 1000:
        n += 1
        for update in core.step():
            assert update.id == 1
    assert not core.has_work
    core.check()
    core.flush_cache()
    assert core.stats().free_tokens == POOL


class Failing:
    """Fails in its n-th step."""

    def __init__(self, n: int) -> None:
        self._model, self._left = make_model(POOL, VOCAB), n
        self.read, self.write = self._model.read, self._model.write
        self.token_bytes = self._model.token_bytes

    def run(self, batch):
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("broken")
        return self._model.run(batch)


@pytest.mark.parametrize("n", range(1, 6))
def test_a_part_that_fails_ends_its_requests_with_its_error(n):
    model = Failing(n)
    core = make_core(vocab=VOCAB, forward=model, pages=model, chunk_tokens=8)
    core.submit(EngineRequest(0, TOKENS, Generate(8), joins=JOINS))
    found = []
    for _ in range(100):
        try:
            found += core.step()
        except RuntimeError:
            core.fail("broken")
    (last,) = [update for update in found if update.final]
    assert last.id == 0
    assert last.error is not None
    assert last.error.message == "broken"
    core.flush_cache()
    assert core.stats().free_tokens == POOL
    assert drive(core, [EngineRequest(1, TOKENS, Generate(8), joins=JOINS)])[1].last.error is None


def test_many_joins_after_each_other_cost_little_to_bound():
    """A client may send hundreds; what they hold was once counted by every way through them."""
    joins = tuple(Join(10 * i, tuple(Part(10 * i + k) for k in range(1, 10))) for i in range(400))
    request = EngineRequest(0, np.zeros(4100, np.int64), Commit(), joins=joins)
    assert settled(request, 10**9).joins == joins
    assert settled(request, POOL).joins == ()


@pytest.mark.parametrize(
    ("joins", "words"),
    [
        ((Join(3, ()),), "no parts"),
        ((Join(3, (Part(3),)),), "ends at token 3 and begins at 3"),
        ((Join(3, (Part(46),)),), "not within 0 to 45"),
        ((Join(3, (Part(9), Part(7))),), "ends at token 7 and begins at 9"),
        ((Join(3, (Part(9),)), Join(8, (Part(12),))), "not within 9 to 45"),
        ((Join(3, (Part(9, (Join(4, (Part(10),)),)), Part(12))),), "not within 3 to 9"),
    ],
)
def test_joins_that_no_prompt_has_are_refused(joins, words):
    core = core_of()
    core.submit(EngineRequest(0, TOKENS, Commit(), joins=joins))
    (update,) = core.step()
    assert update.error.code == pb.ERROR_CODE_INVALID_ARGUMENT
    assert words in update.error.message


def test_log_probabilities_in_parts_are_those_of_the_plain_prompt():
    core = core_of()
    asked = Generate(2, logprobs=LogprobsAsked(5))
    joined, plain = (
        drive(core, [EngineRequest(0, TOKENS, asked, joins=joins)])[0].last for joins in (JOINS, ())
    )
    assert joined.prompt_logprobs == plain.prompt_logprobs


def test_a_prefetch_of_a_joined_prompt_holds_nobody_up():
    core = core_of()
    (update,) = drive(core, [EngineRequest(0, TOKENS, Prefetch(), joins=JOINS)]).values()
    assert update.last.usage.computed_tokens == 0
