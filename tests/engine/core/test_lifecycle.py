"""How requests begin and end: refusals, stops, lengths, cancels, faults; and nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.request import Commit, Generate, SamplingParams, Score, Stops

GREEDY = SamplingParams()


def only(lab, core, tokens, kind):
    return lab.drive(core, [lab.request(1, tokens, kind)])[1]


@pytest.mark.parametrize(
    ("tokens", "kind", "code", "words"),
    [
        ([], Generate(1), pb.ERROR_CODE_INVALID_ARGUMENT, "no tokens"),
        ([5, 9999], Commit(), pb.ERROR_CODE_INVALID_ARGUMENT, "token id 9999"),
        ([5], Score(()), pb.ERROR_CODE_INVALID_ARGUMENT, "at least one choice"),
        ([5], Score(((5,), ())), pb.ERROR_CODE_INVALID_ARGUMENT, "no tokens"),
        ([5], Generate(1, stop_ids=(9999,)), pb.ERROR_CODE_INVALID_ARGUMENT, "stop token"),
        ([5], Generate(1, SamplingParams(top_p=0)), pb.ERROR_CODE_INVALID_ARGUMENT, "top_p"),
        ([5], Generate(1, SamplingParams(float("nan"))), pb.ERROR_CODE_INVALID_ARGUMENT, "temper"),
        ([5] * 101, Commit(), pb.ERROR_CODE_CONTEXT_EXCEEDED, "context is 100"),
        ([5] * 100, Generate(1), pb.ERROR_CODE_CONTEXT_EXCEEDED, "room for one more"),
        ([5] * 98, Score(((6, 7, 8),)), pb.ERROR_CODE_CONTEXT_EXCEEDED, "choices make it 101"),
    ],
)
def test_what_can_never_succeed_is_refused_at_once(lab, tokens, kind, code, words) -> None:
    core = lab.make_core(max_context=100)
    core.submit(lab.request(1, tokens, kind))
    (update,) = core.step()
    assert update.final
    assert update.error.code == code
    assert words in update.error.message
    assert core.stats().counters.positions_run == 0
    assert not core.has_work


def test_longer_than_the_pool_is_refused(lab) -> None:
    core = lab.make_core(pool=50)
    assert only(lab, core, [5] * 50, Commit()).last.error is None
    error = only(lab, core, [5] * 51, Commit()).last.error
    assert error.code == pb.ERROR_CODE_CONTEXT_EXCEEDED
    assert "pool holds 50" in error.message


def test_a_full_queue_refuses_for_later(lab) -> None:
    core = lab.make_core(max_running=1, max_waiting=2)
    for i in range(4):
        core.submit(lab.request(i, [5 + i] * 9, Commit()))
    codes = {u.id: u.error.code for u in core.step() if u.error}
    assert codes == dict.fromkeys((2, 3), pb.ERROR_CODE_RESOURCE_EXHAUSTED)


def test_an_id_in_use_is_refused(lab) -> None:
    core = lab.make_core()
    core.submit(lab.request(1, [5], Generate(100)))
    core.submit(lab.request(1, [6], Commit()))
    assert [u.error.code for u in core.step() if u.error] == [pb.ERROR_CODE_INVALID_ARGUMENT]


def _ids(lab, n: int = 40, **kind) -> list[int]:
    """What the naive model says after [5, 6, 7], with no stops."""
    return lab.Naive().generate([5, 6, 7], Generate(n, **kind))


def test_a_stop_string_ends_at_its_token_and_nothing_is_run_past_it(lab) -> None:
    ids = _ids(lab)
    stop = lab.letter(ids[6]) + lab.letter(ids[7])
    core = lab.make_core()
    outcome = only(lab, core, [5, 6, 7], Generate(40, stop=Stops(("nothing", stop))))
    assert outcome.ids == ids[:8]
    assert outcome.last.matched == stop
    assert outcome.last.finish_reason == pb.FINISH_REASON_STOP
    assert core.stats().counters.positions_run == 3 + 7


def test_a_stop_token_counts_as_sampled_and_is_not_fed(lab) -> None:
    ids = _ids(lab)
    core = lab.make_core()
    outcome = only(lab, core, [5, 6, 7], Generate(40, stop_ids=(ids[4],)))
    assert outcome.ids == ids[:5]
    assert outcome.last.matched_id == ids[4]
    assert outcome.last.usage.completion_tokens == 5
    assert core.stats().counters.positions_run == 3 + 4


def test_min_tokens_keeps_ends_and_stops_away(lab) -> None:
    ids = _ids(lab)
    banned = only(lab, lab.make_core(), [5, 6, 7], Generate(40, min_tokens=8, stop_ids=(ids[2],)))
    assert ids[2] not in banned.ids[:8]
    assert len(banned.ids) >= 8
    stop = (lab.letter(ids[2]), lab.letter(ids[9]))
    late = only(lab, lab.make_core(), [5, 6, 7], Generate(40, min_tokens=5, stop=Stops(stop)))
    assert late.ids == ids[:10]
    assert late.last.matched == stop[1]


def test_zero_tokens_computes_the_prompt_and_draws_nothing(lab) -> None:
    core = lab.make_core()
    outcome = only(lab, core, [5, 6, 7], Generate(0))
    assert outcome.ids == []
    assert outcome.last.finish_reason == pb.FINISH_REASON_LENGTH
    assert core.stats().counters.positions_run == 3


@pytest.mark.parametrize(("limits", "n"), [({"max_context": 10}, 7), ({"pool": 12}, 9)])
def test_a_full_context_ends_a_generation(lab, limits, n) -> None:
    outcome = only(lab, lab.make_core(**limits), [5, 6, 7], Generate(100))
    assert len(outcome.ids) == n
    assert outcome.last.finish_reason == pb.FINISH_REASON_LENGTH


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    pool=st.sampled_from([100, 4096]),
    chunk=st.sampled_from([3, 64]),
)
def test_cancels_leak_nothing_and_disturb_no_one(lab, seed, pool, chunk) -> None:
    rng = np.random.default_rng(seed)
    trunk = rng.integers(10, 900, 20).tolist()
    kinds = [Generate(15), Score(((5, 6, 7), (5, 8), (9,))), Commit()]
    requests = [
        lab.request(i, trunk[: rng.integers(1, 20)] + [900 + i] * 5, kinds[rng.integers(0, 3)])
        for i in range(20)
    ]
    core = lab.make_core(pool=pool, chunk_tokens=chunk, max_running=6)
    for r in requests:
        core.submit(r)
    cancelled, ended = set(), {}
    for _ in range(2000):
        if not core.has_work:
            break
        for i in rng.integers(0, 20, 1):
            if i % 2 and i not in ended:
                cancelled.add(i)
                core.cancel(int(i))
                core.check()
        for update in core.step():
            assert update.id not in cancelled
            if update.final:
                ended[update.id] = update
    assert len(ended) + len(cancelled) == 20
    alone = lab.drive(lab.make_core(), [r for r in requests if r.id in ended])
    for i, update in ended.items():
        assert update.choices == alone[i].last.choices
        assert update.finish_reason == alone[i].last.finish_reason
    core.flush_cache()
    assert core.stats().free_tokens == pool


def test_a_cancel_frees_what_waits_for_it(lab) -> None:
    core = lab.make_core(chunk_tokens=4)
    shared = list(range(10, 60))
    core.submit(lab.request(1, [*shared, 5], Commit()))
    core.submit(lab.request(2, [*shared, 6], Commit()))
    core.step()
    core.cancel(1)
    ended = [u.id for _ in range(20) for u in core.step() if u.final]
    assert ended == [2]
    assert core.stats().counters.positions_run == 51  # the first four were kept
    assert not core.has_work


class Faulty:
    """A model that fails whenever it meets token 666."""

    def __init__(self, model) -> None:
        self._model = model

    def run(self, batch):
        if 666 in batch.token_ids:
            raise RuntimeError("out of luck")
        return self._model.run(batch)


def test_a_failing_step_ends_its_batch_and_leaks_nothing(lab) -> None:
    core = lab.make_core(forward=Faulty(lab.make_model(4096)))
    lab.drive(core, [lab.request(0, [5, 6], Commit())])
    core.submit(lab.request(1, [5, 6, 666], Generate(5)))
    core.submit(lab.request(2, [5, 7, 8], Score(((9,), (10, 11)))))
    with pytest.raises(RuntimeError):
        core.step()
    core.fail("a step failed")
    updates = core.step()
    assert {u.id: u.error.code for u in updates} == dict.fromkeys([1, 2], pb.ERROR_CODE_INTERNAL)
    assert not core.has_work
    assert only(lab, core, [5, 7, 8], Generate(3)).last.error is None
    core.flush_cache()
    assert core.stats().free_tokens == 4096


def test_reset_starts_anew(lab) -> None:
    core = lab.make_core()
    core.submit(lab.request(1, [5, 6, 7], Generate(50)))
    core.step()
    core.reset("lost")
    assert [(u.id, u.error.message) for u in core.step()] == [(1, "lost")]
    assert core.stats().free_tokens == 4096
    assert only(lab, core, [5, 6, 7], Generate(8)).ids == _ids(lab, 8)


def test_flush_keeps_what_runs(lab) -> None:
    core = lab.make_core()
    lab.drive(core, [lab.request(1, range(100, 150), Commit())])
    core.submit(lab.request(2, [*range(100, 120), 5], Generate(30)))
    core.step()
    assert core.flush_cache() == 30
    core.check()
    rest = [i for _ in range(40) for u in core.step() for i in u.new_ids]
    assert len(rest) == 29


def test_times_add_up(lab) -> None:
    usage = only(lab, lab.make_core(), range(10, 40), Generate(5)).last.usage
    assert min(usage.queue_s, usage.prefill_s, usage.decode_s) > 0


def test_a_commit_of_nothing_is_done_at_once(lab) -> None:
    outcome = only(lab, lab.make_core(), [], Commit())
    assert outcome.last.error is None
    assert outcome.last.usage.prompt_tokens == 0


def test_a_refusal_of_a_cancelled_request_is_not_told(lab) -> None:
    core = lab.make_core()
    core.submit(lab.request(1, [5, 9999], Commit()))
    core.cancel(1)
    assert core.step() == []


def test_a_request_whose_end_fails_is_told_all_the_same(lab, monkeypatch) -> None:
    core = lab.make_core()
    for i in (1, 2):
        core.submit(lab.request(i, [5, 6, 7 + i], Generate(1)))
    monkeypatch.setattr(core.scheduler, "leave", lambda work: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        core.step()
    core.fail("a step failed")
    assert {update.id for update in core.step() if update.final} == {1, 2}


def test_broken_books_end_in_a_new_start(lab) -> None:
    """Whatever is broken stays broken: the step would fail for ever."""
    core = lab.make_core()
    core.submit(lab.request(1, [5, 6, 7], Generate(50)))
    core.step()
    core.cache.pool.reserve(3)  # lost
    with pytest.raises(AssertionError):
        core.step()
    core.fail("a step failed")
    assert [update.id for update in core.step() if update.final] == [1]
    outcome = lab.drive(core, [lab.request(2, [5, 6], Generate(3))])[2]
    assert len(outcome.ids) == 3
