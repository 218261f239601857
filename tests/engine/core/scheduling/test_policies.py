"""Who is next under each policy, what is kept for those that wait, and last-use marks."""

from __future__ import annotations

import numpy as np
import pytest
from other_caches import CACHES

from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import Commit, Generate, Score

A, B, C = ([i] * 20 for i in (3, 4, 5))


def admitted_in_order(core) -> list[int]:
    """Runs to the end; the ids in the order of admission."""
    order: list[int] = []
    admit = core.scheduler.admit

    def noting(now: float):  # type: ignore[no-untyped-def]
        works = admit(now)
        order.extend(work.request.id for work in works)
        return works

    core.scheduler.admit = noting
    while core.has_work:
        core.step()
    return order


def prompts_of(lab, core, prompts) -> None:
    for i, prompt in enumerate(prompts):
        core.submit(lab.request(i, prompt, Commit()))


def warmed(lab, prompt, **options):
    core = lab.make_core(max_running=1, **options)
    lab.drive(core, [lab.request(99, prompt, Commit())])
    return core


def test_lpm_takes_the_longest_cached_prefix_first(lab) -> None:
    core = warmed(lab, A + B)
    prompts_of(lab, core, [C, A + C, A + B + C, [*A, 7]])
    assert admitted_in_order(core) == [2, 1, 3, 0]


def test_lpm_sees_what_is_cached_while_requests_wait(lab) -> None:
    """The second request of a prefix goes on before others as soon as the first has cached it."""
    core = lab.make_core(max_running=1)
    prompts_of(lab, core, [A + B, C, B + C, A + C, [*A, *B, 9]])
    assert admitted_in_order(core) == [0, 4, 3, 1, 2]


def test_lpm_goes_by_what_is_still_cached(lab) -> None:
    core = warmed(lab, A + A, pool=64)
    prompts_of(lab, core, [B, [*A, *A, 7]])
    core.scheduler.waiting.begin()
    while core.scheduler.pins.holders:
        core.scheduler.pins.unpin_last()
    core.flush_cache()
    assert admitted_in_order(core) == [0, 1]


def test_the_pin_of_who_comes_last_gives_way_first(lab) -> None:
    core = warmed(lab, A + B)
    prompts_of(lab, core, [A + C, A + B + C])
    core.scheduler.waiting.begin()
    assert sorted(work.wait.n_known for work in core.scheduler.pins.holders) == [len(A), len(A + B)]
    core.scheduler.pins.unpin_last()
    assert [work.wait.n_known for work in core.scheduler.pins.holders] == [len(A + B)]


def test_dfs_goes_depth_first(lab) -> None:
    core = lab.make_core(max_running=1, policy="dfs")
    prompts_of(lab, core, [A + B, B + A, A + C, B + B, A + B + C])
    assert admitted_in_order(core) == [0, 4, 2, 1, 3]


def test_fcfs_goes_by_arrival(lab) -> None:
    core = warmed(lab, C, policy="fcfs")
    prompts_of(lab, core, [A, B, C])
    assert admitted_in_order(core) == [0, 1, 2]


def test_random_is_an_order_of_its_own_and_repeatable(lab) -> None:
    orders = []
    for _ in range(2):
        core = lab.make_core(max_running=1, policy="random")
        prompts_of(lab, core, [[3 + i] * 5 for i in range(30)])
        orders.append(admitted_in_order(core))
    assert orders[0] == orders[1] != sorted(orders[0])


def test_an_unknown_policy_is_refused(lab) -> None:
    with pytest.raises(ValueError, match="one of lpm, dfs, fcfs, random, program, not 'lru'"):
        lab.make_core(policy="lru")


@pytest.mark.sweep
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cache", CACHES)
def test_every_policy_serves_all_and_forgets_them(lab, policy, cache) -> None:
    rng = np.random.default_rng(1)
    core = lab.make_core(max_running=3, pool=200, policy=policy, cache=cache)
    prompts = [A[: rng.integers(1, 20)] + rng.integers(3, 90, 9).tolist() for _ in range(40)]
    outcomes = lab.drive(
        core,
        [lab.request(i, p, Generate(int(rng.integers(0, 9)))) for i, p in enumerate(prompts)],
        per_step=2,
    )
    assert all(outcome.last.error is None for outcome in outcomes.values())
    assert len(core.scheduler.waiting) == len(core.scheduler.pins.holders) == 0
    core.flush_cache()
    assert core.stats().free_tokens == 200


def test_without_a_cache_nothing_is_shared(lab) -> None:
    core = lab.make_core(cache="none")
    lab.drive(core, [lab.request(i, A + B, Generate(3)) for i in range(4)])
    assert core.stats().counters.cached_tokens == 0
    assert core.stats().counters.positions_run == 4 * (len(A + B) + 2)


def test_without_sharing_in_the_batch_each_computes_its_own(lab) -> None:
    runs = {}
    for shares in (True, False):
        core = lab.make_core(shares_in_batch=shares)
        lab.drive(core, [lab.request(i, [*A, *B, 90 + i], Generate(3)) for i in range(4)])
        runs[shares] = core.stats().counters.positions_run
    assert runs == {True: 40 + 4 * (1 + 2), False: 4 * (41 + 2)}


def test_what_waiting_requests_share_is_kept_for_them(lab) -> None:
    """Room for another is made of what nobody waits for, however long ago that was used."""
    core = lab.make_core(pool=100, max_running=1)
    for prompt in (A, B):
        lab.drive(core, [lab.request(90, prompt, Commit())])
    core.submit(lab.request(1, [*A, 8], Commit()))  # A was used before B, but is waited for
    core.submit(lab.request(2, [7] * 70, Commit()))
    core.scheduler.waiting.begin()
    core.scheduler.cache.reserve(70)
    assert core.scheduler.cache.match(np.array(A), b"").length == 20
    assert core.scheduler.cache.match(np.array(B), b"").length == 10


def test_pins_give_way_to_running_requests(lab) -> None:
    core = lab.make_core(pool=64, max_running=1)
    lab.drive(core, [lab.request(90, A, Commit())])
    core.submit(lab.request(1, B, Generate(40)))
    core.step()
    core.submit(lab.request(2, [*A, 7], Commit()))
    outcomes = {u.id: u for _ in range(200) for u in core.step() if u.final}
    assert outcomes[1].usage.completion_tokens == 40
    assert outcomes[2].usage.prompt_tokens == 21
    assert core.stats().preemptions == 0


def test_last_use_marks_are_evicted_first(lab) -> None:
    """Its own part of a marked prompt goes before what was used longer ago; the kept part not."""
    core = lab.make_core(pool=100)
    lab.drive(core, [lab.request(1, B, Commit())])
    marked = lab.request(2, A + C, Generate(5, stop_ids=(1,)))
    lab.drive(core, [type(marked)(**{**_fields(marked), "n_reusable": 20})])
    match = core.scheduler.cache.match
    assert match(np.array(A + C), b"").length == 40
    core.scheduler.cache.release(core.scheduler.cache.reserve(60))
    assert match(np.array(A + C), b"").length == 20
    assert match(np.array(B), b"").length == 20


def test_a_last_use_mark_spares_what_others_use(lab) -> None:
    core = lab.make_core(pool=200)
    longer = lab.request(1, A + C + B, Commit())
    lab.drive(core, [longer])
    marked = lab.request(2, A + C, Commit())
    lab.drive(core, [type(marked)(**{**_fields(marked), "n_reusable": 20})])
    core.scheduler.cache.release(core.scheduler.cache.reserve(150))
    assert core.scheduler.cache.match(np.array(A + C), b"").length == 40


def _fields(request) -> dict:
    return {name: getattr(request, name) for name in ("id", "tokens", "kind", "namespace")}


def test_salts_share_nothing(lab) -> None:
    core = lab.make_core()
    requests = [
        type(r)(**{**_fields(r), "namespace": salt})
        for r, salt in ((lab.request(i, A + B, Commit()), bytes([i % 2])) for i in range(4))
    ]
    lab.drive(core, requests)
    assert core.stats().counters.positions_run == 2 * 40


def test_pins_do_not_shut_requests_out_while_a_long_one_runs(lab) -> None:
    """Nine prefixes fill the pool, all of them waited for; there is room if one gives way."""
    core = lab.make_core(pool=1000, headroom_tokens=1)
    prefixes = [[20 + i] * 80 for i in range(9)]
    lab.drive(core, [lab.request(90 + i, prefix, Commit()) for i, prefix in enumerate(prefixes)])
    core.submit(lab.request(0, [3, 4, 5], Generate(500)))
    core.step()
    for i, prefix in enumerate(prefixes):
        core.submit(lab.request(1 + i, [*prefix, *[40 + i] * 150], Generate(5)))
    ends = {}
    for step in range(1000):
        ends |= {update.id: step for update in core.step() if update.final}
    assert max(ends[i] for i in range(1, 10)) < ends[0]


def test_a_last_use_mark_holds_for_a_score(lab) -> None:
    core = lab.make_core(pool=100)
    lab.drive(core, [lab.request(1, B, Commit())])
    marked = lab.request(2, A + C, Score(((7, 8), (7, 9, 9), (8,))))
    lab.drive(core, [type(marked)(**{**_fields(marked), "n_reusable": 20})])
    core.scheduler.cache.release(core.scheduler.cache.reserve(60))
    assert core.scheduler.cache.match(np.array(A + C), b"").length == 20
    assert core.scheduler.cache.match(np.array(B), b"").length == 20


def test_salts_that_nobody_uses_are_forgotten(lab) -> None:
    core = lab.make_core(pool=100)
    for i in range(500):
        one = lab.request(i, A, Commit())
        lab.drive(core, [type(one)(**{**_fields(one), "namespace": b"%d" % i})])
    assert len(core.cache.tree._roots) < 200
