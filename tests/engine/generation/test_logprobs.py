"""Log-probabilities are those of the naive model's logits, however they came to be computed."""

from __future__ import annotations

import numpy as np
import pytest
from engine.core.conftest import Naive, drive, letter, make_core, request
from engine.generation.conftest import Rig
from hypothesis import given
from hypothesis import strategies as st
from other_caches import CACHES
from property_tests import examples
from tests_support import one_in

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.logprobs import likeliest, log_sum_exp
from sgc.runtime.engine.requests.request import (
    Commit,
    Generate,
    LogprobsAsked,
    SamplingParams,
    Score,
    Stops,
    Update,
)

PROMPT = [int(i) for i in np.random.default_rng(7).integers(10, 900, 20)]
END = 1


class Right:
    """Log-probabilities after each prefix, worked out once."""

    def __init__(self) -> None:
        self._naive = Naive()
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def row(self, tokens) -> np.ndarray:
        key = tuple(tokens)
        if key not in self._known:
            logits = self._naive.logits(key)[0].astype(np.float64)
            self._known[key] = logits - np.logaddexp.reduce(logits)
        return self._known[key]

    def check(self, found, tokens, first: int, top: int) -> None:
        """found: of tokens[first:], in order."""
        assert [each.id for each in found] == list(tokens[first:])
        for at, each in enumerate(found, start=first):
            if at == 0:
                assert each.logprob is None
                assert each.top == ()
                continue
            row = self.row(tokens[:at])
            assert each.logprob == pytest.approx(row[tokens[at]], abs=1e-5)
            best = np.argsort(-row, kind="stable")[:top]
            assert [i for i, _ in each.top] == best.tolist()
            np.testing.assert_allclose([p for _, p in each.top], row[best], rtol=0, atol=1e-5)


right = Right()


def asked(n: int = 6, start: int | None = None, top: int = 3, **more) -> Generate:
    params = more.pop("params", SamplingParams(1.0, seed=n))
    return Generate(n, params, logprobs=LogprobsAsked(start, top), **more)


def check(update: Update, prompt, ids, kind: Generate) -> None:
    assert update is not None
    assert update.error is None, update.error
    top, start = kind.logprobs.top, kind.logprobs.start
    right.check(update.logprobs, [*prompt, *ids], len(prompt), top)
    if start is None:
        assert update.prompt_logprobs == ()
    else:
        right.check(update.prompt_logprobs, list(prompt), min(start, len(prompt)), top)


@pytest.mark.parametrize("top", [0, 1, 5, 996, 997, 2000])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_those_of_the_output(temperature, top) -> None:
    params = SamplingParams(
        temperature, seed=3, top_k=20, frequency_penalty=1.0, logit_bias=((50, 100.0), (51, -9.0))
    )
    kind = asked(8, top=top, params=params)
    outcome = drive(make_core(), [request(1, PROMPT, kind)])[1]
    assert len(outcome.last.logprobs) == len(outcome.ids) == 8
    check(outcome.last, PROMPT, outcome.ids, kind)
    plain = drive(make_core(), [request(1, PROMPT, Generate(8, params))])[1]
    assert (plain.ids, plain.last.logprobs) == (outcome.ids, ())


def test_the_token_that_ends_has_one() -> None:
    said = drive(make_core(), [request(1, PROMPT, Generate(9))])[1].ids
    for more in ({"stop_ids": (said[4],)}, {"stop": Stops((letter(said[3]) + letter(said[4]),))}):
        kind = asked(9, params=SamplingParams(), **more)
        outcome = drive(make_core(), [request(1, PROMPT, kind)])[1]
        assert outcome.last.finish_reason == pb.FINISH_REASON_STOP
        assert len(outcome.ids) == 5
        check(outcome.last, PROMPT, outcome.ids, kind)


@pytest.mark.parametrize(("cached", "chunk", "n"), one_in(6, [0, 7, 19, 20], [1, 3, 64], [0, 5]))
def test_those_of_the_prompt_from_everywhere(cached, chunk, n) -> None:
    """With a part of it in the cache or all, in pieces or at once."""
    core = make_core(chunk_tokens=chunk)
    for start in (0, 1, 2, 8, 18, 19, 20, 25, None):
        core.flush_cache()
        if cached:
            drive(core, [request(9, PROMPT[:cached], Commit())])
        kind = asked(n, start, top=2)
        outcome = drive(core, [request(1, PROMPT, kind)])[1]
        assert len(outcome.ids) == n
        check(outcome.last, PROMPT, outcome.ids, kind)
        usage = outcome.last.usage
        assert usage.cached_tokens <= max(
            0, min(cached, max(start if start else 0, 1) - 1, 19)
        ) or (start is None or start >= 20)
        assert usage.prompt_tokens == 20


def test_a_prompt_of_one_token() -> None:
    for start in (0, 1, 5, None):
        for n in (0, 2):
            kind = asked(n, start)
            outcome = drive(make_core(), [request(1, [77], kind)])[1]
            check(outcome.last, [77], outcome.ids, kind)
            assert len(outcome.last.prompt_logprobs) == (start == 0)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("chunk", [3, 512])
@pytest.mark.parametrize("shares", [True, False])
def test_those_of_equal_prompts_that_come_together(kind, chunk, shares) -> None:
    """Some ask, some do not; each gets its own."""
    core = make_core(cache=kind, chunk_tokens=chunk, shares_in_batch=shares)
    starts = [None, 0, 5, 5, None, 19, 0]
    kinds = [
        asked(n % 3 * 2, start, params=SamplingParams(1.0, seed=n))
        for n, start in enumerate(starts)
    ]
    requests = [request(i, PROMPT, each) for i, each in enumerate(kinds)]
    requests += [
        request(10 + i, PROMPT, Generate(3, SamplingParams(1.0, seed=i))) for i in range(3)
    ]
    requests += [request(20, PROMPT, Score(((5, 6), (7,)))), request(21, [*PROMPT, 9], Commit())]
    order = np.random.default_rng(chunk).permutation(len(requests))
    outcomes = drive(core, [requests[i] for i in order])
    for i, each in enumerate(kinds):
        check(outcomes[i].last, PROMPT, outcomes[i].ids, each)
    for i in range(3):
        expected = Naive().generate(PROMPT, Generate(3, SamplingParams(1.0, seed=i)))
        assert outcomes[10 + i].ids == expected
    core.flush_cache()
    assert core.stats().free_tokens == 4096


def test_who_asks_for_all_computes_all_and_shares_it() -> None:
    core = make_core()
    drive(core, [request(1, PROMPT, asked(0, 0))])
    assert core.stats().counters.positions_run >= len(PROMPT) - 1
    usage = drive(core, [request(2, PROMPT, Generate(1))])[2].last.usage
    assert usage.cached_tokens == 19
    again = drive(core, [request(3, PROMPT, asked(0, 0))])[3].last.usage
    assert (again.cached_tokens, again.computed_tokens) == (0, 20)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", CACHES)
def test_those_of_requests_that_were_preempted(kind) -> None:
    rng = np.random.default_rng(3)
    requests, kinds = [], []
    for i in range(12):
        prompt = [*PROMPT[: i + 1], *rng.integers(10, 900, 6).tolist()]
        kinds.append(
            asked(24, (0, None, 4, 12)[i % 4], params=SamplingParams(float(i % 2), seed=i))
        )
        requests.append(request(i, prompt, kinds[-1]))
    core = make_core(pool=90, cache=kind, chunk_tokens=7, headroom_tokens=0)
    outcomes = drive(core, requests, per_step=3)
    assert core.stats().preemptions > 2
    for r, each in zip(requests, kinds, strict=True):
        outcome = outcomes[r.id]
        assert len(outcome.last.logprobs) == len(outcome.ids)
        check(outcome.last, r.tokens.tolist(), outcome.ids, each)


@examples(30)
@given(
    seed=st.integers(0, 10**6),
    chunk=st.sampled_from([1, 3, 5, 16, 512]),
    pool=st.sampled_from([70, 120, 4096]),
    max_running=st.sampled_from([1, 3, 256]),
    per_step=st.sampled_from([None, 1, 2]),
)
def test_those_of_random_requests(seed, chunk, pool, max_running, per_step) -> None:
    rng = np.random.default_rng(seed)
    requests = []
    for i in range(10):
        prompt = PROMPT[: rng.integers(1, 21)] + rng.integers(10, 14, rng.integers(0, 4)).tolist()
        start = None if rng.integers(0, 3) == 0 else int(rng.integers(0, 26))
        params = SamplingParams(float(rng.integers(0, 2)), seed=int(rng.integers(0, 3)))
        kind = asked(int(rng.integers(0, 12)), start, 2, params=params, stop_ids=(END,))
        requests.append(request(i, prompt, kind if rng.integers(0, 4) else Commit()))
    core = make_core(pool=pool, chunk_tokens=chunk, max_running=max_running, headroom_tokens=0)
    outcomes = drive(core, requests, per_step=per_step)
    for r in requests:
        if isinstance(r.kind, Generate):
            check(outcomes[r.id].last, r.tokens.tolist(), outcomes[r.id].ids, r.kind)
    core.flush_cache()
    assert core.stats().free_tokens == pool


def test_nothing_is_told_of_who_was_cancelled_and_the_others_are() -> None:
    core = make_core(chunk_tokens=3)
    for i in range(4):
        core.submit(request(i, PROMPT, asked(4, 0)))
    found = core.step()
    core.cancel(0)
    while core.has_work:
        found += core.step()
    ids = {i: [t for u in found if u.id == i for t in u.new_ids] for i in range(1, 4)}
    ended = {u.id: u for u in found if u.final}
    assert ended.keys() == {1, 2, 3}
    for i, update in ended.items():
        check(update, PROMPT, ids[i], asked(4, 0))


# Under a constraint


def test_under_a_constraint_nothing_is_jumped_over(rig: Rig) -> None:
    constraint = rig.compile("regex", r"The answer is (?:yes|no)\.")
    params = SamplingParams(1.0, seed=1)
    plain = rig.one(rig.core(), "Well: ", Generate(40, params, constraint=constraint))
    kind = Generate(40, params, constraint=constraint, logprobs=LogprobsAsked(0, 2))
    outcome = rig.one(rig.core(), "Well: ", kind)
    assert plain.last.usage.forced_tokens > 0
    assert outcome.last.usage.forced_tokens == 0
    assert outcome.last.finish_reason == pb.FINISH_REASON_STOP
    assert [each.id for each in outcome.last.logprobs] == outcome.ids
    assert all(each.logprob < 0 for each in outcome.last.logprobs)
    # The model's own: what the constraint forbids is among the likeliest.
    said = {each.id for each in outcome.last.logprobs}
    assert any(i not in said for each in outcome.last.logprobs for i, _ in each.top)


def test_where_no_token_is_left_none_is_logged(rig: Rig) -> None:
    """The text is whole, may not end yet, and its only way on is a stop token."""
    b = rig.ids("b")[0]
    for min_tokens in (0, 5):
        kind = Generate(
            9,
            min_tokens=min_tokens,
            stop_ids=(b, rig.eos),
            constraint=rig.compile("regex", "[xy]b?"),
            logprobs=LogprobsAsked(),
        )
        outcome = rig.one(rig.core(), "Well: ", kind)
        assert outcome.last.finish_reason == pb.FINISH_REASON_STOP
        assert [each.id for each in outcome.last.logprobs] == outcome.ids


# The parts


@examples(80)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=40), st.integers(0, 45))
def test_the_likeliest(values, k) -> None:
    row = np.array(values, np.float32)
    assert likeliest(row, k) == np.argsort(-row, kind="stable")[:k].tolist()


def test_the_sum_is_stable_and_refuses_what_is_no_number() -> None:
    row = np.array([1000.0, 1000.0, -np.inf], np.float32)
    assert log_sum_exp(row) == pytest.approx(1000 + np.log(2))
    for bad in (np.nan, np.inf):
        with pytest.raises(FloatingPointError):
            log_sum_exp(np.array([0.0, bad], np.float32))
    with pytest.raises(FloatingPointError):
        log_sum_exp(np.array([-np.inf, -np.inf], np.float32))
