"""States of recurrent layers beside the tree: which prefixes are found, and that no request goes on
from a state that is not its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine.core.fuzz import engine_fuzz, engine_laws
from engine.core.fuzz.engine_play import play
from engine.core.with_states import WithStates

from sgc.runtime.engine.requests.request import Commit, EngineRequest, Generate, Prefetch, Score
from sgc.runtime.engine.scheduling import snapshots
from sgc.runtime.engine.step.core import EngineCore

PREFIX = list(range(100, 200))
FOUR = Generate(4)


def make_core(lab, n_slots: int = 64, pool: int = 4096, **options) -> EngineCore:
    model = WithStates(lab.make_model(pool), n_slots)
    return lab.make_core(forward=model, pool=pool, state_slots=n_slots, **options)


def ask(lab, core: EngineCore, *requests: EngineRequest, **options) -> list[int]:
    """How many tokens of each prompt were computed."""
    outcomes = lab.drive(core, requests, **options)
    return [outcomes[each.id].last.usage.computed_tokens for each in requests]


def asked(lab, i: int, *tail: int, kind=FOUR, **more) -> EngineRequest:
    return replace(lab.request(i, [*PREFIX, *tail], kind), **more)


def test_requests_that_arrive_together_compute_what_they_share_once(lab) -> None:
    """The first is cut where the others part from it, whatever the chunks."""
    for chunk in (1000, 64, 7):
        core = make_core(lab, chunk_tokens=chunk)
        requests = [asked(lab, i, 500 + i, 600 + i) for i in range(5)]
        assert ask(lab, core, *requests) == [102, 2, 2, 2, 2]
        assert core.stats().counters.positions_run == 100 + 5 * 2 + 5 * 3


def test_a_conversation_goes_on_from_its_end(lab) -> None:
    core = make_core(lab)
    first = lab.drive(core, [asked(lab, 1)])[1].ids
    assert ask(lab, core, asked(lab, 2, *first, 7, 8)) == [3]  # the last token had not been run


def test_the_same_prompt_again_runs_its_last_token(lab) -> None:
    core = make_core(lab)
    assert [ask(lab, core, asked(lab, i)) for i in range(2)] == [[100], [1]]


def test_a_committed_prefix_is_found_whole(lab) -> None:
    core = make_core(lab, chunk_tokens=30)
    assert ask(lab, core, asked(lab, 1, kind=Commit())) == [100]
    assert ask(lab, core, asked(lab, 2, 7), asked(lab, 3, 8, 9), per_step=1) == [1, 2]


def test_where_prompts_part_is_learnt_from_the_second(lab) -> None:
    """The first could not know; the second computes the part again, for all that come."""
    core = make_core(lab)
    tails = [[i] * 20 for i in (501, 502, 503, 504)]
    found = [ask(lab, core, asked(lab, i, *tail)) for i, tail in enumerate(tails)]
    assert found == [[120], [120], [20], [20]]


def test_up_to_where_a_prompt_may_be_shared_is_told(lab) -> None:
    """The compiler's mark: so the second need not learn it, and nothing after it is kept."""
    core = make_core(lab)
    requests = [asked(lab, i, *[501 + i] * 20, n_reusable=100) for i in range(3)]
    assert [ask(lab, core, each) for each in requests] == [[120], [20], [20]]
    assert core.cache.states.n_snapshots == 1


def test_a_prefetch_is_gone_on_from(lab) -> None:
    core = make_core(lab, chunk_tokens=64)
    ask(lab, core, asked(lab, 1, kind=Prefetch()))
    assert ask(lab, core, asked(lab, 2, 7)) == [1]


def test_choices_are_scored_from_the_prompts_state(lab) -> None:
    choices = ((5, 6, 7), (5, 6, 8, 9), (5, 9), (6,))
    plain = lab.drive(lab.make_core(), [asked(lab, 1, kind=Score(choices))])[1]
    for chunk in (1000, 3, 1):
        core = make_core(lab, chunk_tokens=chunk)
        found = lab.drive(core, [asked(lab, 1, kind=Score(choices))])[1]
        np.testing.assert_allclose(np.concatenate(found.last.choices),
                                   np.concatenate(plain.last.choices))  # fmt: skip
        assert ask(lab, core, asked(lab, 2, 5, 6, 8, 9, 9)) == [5]


def test_few_slots_keep_what_was_used_last(lab) -> None:
    """Each running request needs one; the others are for snapshots, chunks' ends go first."""
    core = make_core(lab, n_slots=4, chunk_tokens=20)
    ask(lab, core, asked(lab, 1, kind=Commit()))
    other = lab.request(2, range(300, 400), Generate(4))
    ask(lab, core, other)
    assert ask(lab, core, asked(lab, 3, 7)) == [1]
    assert core.cache.states.n_evicted > 0


def test_no_more_run_than_have_a_slot(lab) -> None:
    core = make_core(lab, n_slots=2)
    requests = [lab.request(i, range(10 * i, 10 * i + 9), Generate(6)) for i in range(6)]
    for each in requests:
        core.submit(each)
    most = 0
    while core.has_work:
        core.step()
        most = max(most, core.stats().running_requests)
    assert most == 2


SLOW = [pytest.param(range(n, n + 30), marks=pytest.mark.slow) for n in range(4, 124, 30)]


@pytest.mark.parametrize("seeds", [range(4), *SLOW])
def test_no_request_goes_on_from_a_wrong_state(seeds: range, monkeypatch) -> None:
    """Random engines, with preemption, cancels, faults and flushes, and few slots."""
    for seed in seeds:
        requests, setup, right = engine_fuzz.make_case(seed)
        monkeypatch.setattr(snapshots, "LEAST_APART", (1, 16)[seed % 2])
        setup = replace(setup, cache="radix", state_slots=(2, 3, 8, 256)[seed // 2 % 4])
        played = play(requests, setup, seed, right)
        engine_laws.assert_right(requests, played, right)
        engine_laws.assert_freed(played, setup.pool)
        assert played.core.cache.states.n_snapshots == 0
