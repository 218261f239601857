"""What a program comes back to is kept for a while, as far as there is room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sgc.runtime.engine.cache import kept
from sgc.runtime.engine.requests.request import EngineRequest, Generate, ProgramRun
from sgc.runtime.engine.step.core import EngineCore

PROMPT = list(range(300, 400))


def asked(lab, i: int, *, remaining: int | None = 9, n_reusable=None, tail=()) -> EngineRequest:
    request = lab.request(i, [*PROMPT, *tail], Generate(4))
    return replace(request, run=ProgramRun(1, remaining), n_reusable=n_reusable)


def churn(lab, core: EngineCore, n: int = 12) -> None:
    """Others' requests, more than the pool holds."""
    lab.drive(core, [lab.request(100 + i, [i + 2] * 60, Generate(4)) for i in range(n)], per_step=1)
    assert core.stats().evicted_tokens > 0


def found(lab, core: EngineCore) -> int:
    return lab.drive(core, [asked(lab, 2, tail=(7, 8))])[2].last.usage.cached_tokens


@pytest.mark.parametrize(
    ("told", "is_kept"),
    [
        ({}, True),
        ({"n_reusable": 0}, False),  # the compiler's mark of its last use
        ({"remaining": None}, False),  # an interpreted run, of which nobody knows
    ],
)
def test_a_prefix_that_a_program_comes_back_to_outlives_others(lab, told, is_kept) -> None:
    core = lab.make_core(pool=400, lookup=False)
    lab.drive(core, [asked(lab, 1, **told)])
    churn(lab, core)
    assert found(lab, core) == (100 if is_kept else 0)


def test_after_its_time_it_is_as_any_other(lab, monkeypatch) -> None:
    monkeypatch.setattr(kept, "KEPT_S", 0.0)
    core = lab.make_core(pool=400, lookup=False)
    lab.drive(core, [asked(lab, 1)])
    churn(lab, core)
    assert found(lab, core) == 0


def test_it_gives_way_where_a_request_needs_the_room(lab) -> None:
    core = lab.make_core(pool=300, lookup=False)
    lab.drive(core, [asked(lab, 1)])
    assert len(core.cache.kept) == 1
    large = lab.request(3, [5] * 280, Generate(4))
    assert lab.drive(core, [large])[3].last.error is None
    assert len(core.cache.kept) == 0


def test_at_most_half_of_the_pool_is_kept(lab) -> None:
    core = lab.make_core(pool=1000, lookup=False)
    several = [replace(asked(lab, i), tokens=asked(lab, i).tokens + i) for i in range(1, 9)]
    lab.drive(core, several, per_step=1)
    assert len(core.cache.kept) == 4
    assert core.flush_cache() == 1000 - core.stats().free_tokens or core.stats().free_tokens == 1000
    core.check()


def test_a_conversation_keeps_its_latest_turn_only(lab) -> None:
    core = lab.make_core(lookup=False)
    first = lab.drive(core, [asked(lab, 1)])[1].ids
    lab.drive(core, [asked(lab, 2, tail=(*first, 7))])
    assert len(core.cache.kept) == 1


def test_what_a_program_has_come_back_to_for_the_last_time_is_let_go(lab) -> None:
    core = lab.make_core(pool=400, lookup=False)
    first = lab.drive(core, [asked(lab, 1)])[1].ids
    lab.drive(core, [asked(lab, 3, tail=(*first, 7), n_reusable=60)])
    assert len(core.cache.kept) == 0
    churn(lab, core)
    assert found(lab, core) == 0
