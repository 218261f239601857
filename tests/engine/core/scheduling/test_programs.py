"""The policy `program`: the run with the least left goes first, and owners take turns."""

from __future__ import annotations

import numpy as np
import pytest
import virtual_clock as vc
from tests_support import one_in

from sgc.runtime.engine.requests.request import (
    Commit,
    Embed,
    EngineRequest,
    Generate,
    ProgramRun,
)
from sgc.runtime.engine.scheduling import programs, turns

N_OUT = 8


def ask(id: int, left: int | None, *, run: int | None = None, owner: bytes = b"", n: int = 20,
        n_out: int = N_OUT) -> EngineRequest:  # fmt: skip
    """A request of a prompt of its own; left and run None: it belongs to no run."""
    told = None if left is None and run is None else ProgramRun(id if run is None else run, left)
    tokens = np.full(n, 3 + id, np.int64)
    return EngineRequest(id, tokens, Generate(n_out), owner=owner, run=told)


def order_of(core, requests) -> list[int]:
    """The ids in the order in which they end, one running at a time."""
    for request in requests:
        core.submit(request)
    ended: list[int] = []
    while core.has_work:
        ended += [update.id for update in core.step() if update.final]
    return ended


@pytest.fixture
def core(lab):
    return lab.make_core(max_running=1, policy="program", lookup=False)


def test_the_run_with_the_least_left_goes_first(core) -> None:
    assert order_of(core, [ask(0, 500), ask(1, 20), ask(2, 100), ask(3, 3)]) == [3, 1, 2, 0]


def test_requests_of_no_run_count_alike(core) -> None:
    requests = [ask(0, 90), ask(1, None, n_out=20), ask(2, 10), ask(3, None, n_out=4)]
    assert order_of(core, requests) == [2, 1, 3, 0]


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(4))
def test_without_programs_it_is_the_longest_cached_prefix(lab, seed: int) -> None:
    """In a pool that holds a few of the prompts, which begin alike in groups."""
    rng = np.random.default_rng(seed)
    groups = [rng.integers(3, 60, n).tolist() for n in (10, 30, 60)]
    requests = [
        EngineRequest(i, np.array([*groups[rng.integers(3)], *rng.integers(3, 60, 5)], np.int64),
                      Generate(int(rng.integers(1, 20))))
        for i in range(60)
    ]  # fmt: skip
    orders = []
    for policy in ("lpm", "program"):
        core = lab.make_core(pool=160, max_running=2, policy=policy, lookup=False)
        orders.append(order_of(core, requests))
    assert orders[0] == orders[1]


def test_streams_of_a_fork_go_in_together(core) -> None:
    """Equal runs do not take turns: else both would end late."""
    requests = [ask(i, 40, run=i // 3) for i in range(6)]
    assert order_of(core, requests) == [0, 1, 2, 3, 4, 5]


def test_what_is_cached_counts_too(core, lab) -> None:
    lab.drive(core, [ask(0, 0, n=200)])
    cached = np.full(200, 3, np.int64)
    goes_on = EngineRequest(8, cached, Generate(N_OUT), run=ProgramRun(8, 150))
    assert order_of(core, [ask(7, 40, n=200), goes_on]) == [8, 7]


def test_a_run_that_does_not_tell_counts_by_what_it_was_served(core) -> None:
    assert order_of(core, [ask(0, None, run=1, n_out=30)]) == [0]
    requests = [ask(1, None, run=1), ask(2, 10, run=2), ask(3, None, run=3), ask(4, 35, run=4)]
    assert order_of(core, requests) == [3, 2, 1, 4]


def test_memory_of_runs_is_bounded(core, monkeypatch) -> None:
    monkeypatch.setattr(programs, "_MAX_RUNS", 10)
    monkeypatch.setattr(programs, "_MAX_OWNERS", 5)
    requests = [ask(i, None, run=i, owner=b"%d" % (i % 20), n=3) for i in range(60)]
    assert len(order_of(core, requests)) == 60
    order = core.scheduler.waiting._queues[0]._programs
    assert len(order.remaining._served) == 10
    assert len(order._served) <= 5
    assert not order._waiting


@pytest.mark.parametrize(("pool", "n", "n_out"), [(200, 20, 60), (200, 60, 60), (150, 20, 100)])
def test_the_oldest_request_is_not_preempted_for_ever(lab, pool: int, n: int, n_out: int) -> None:
    """It has the most left, and others keep coming; by `lpm` it ends as soon."""
    ended = {}
    for policy in ("lpm", "program"):
        core = lab.make_core(pool=pool, max_running=8, policy=policy, lookup=False)
        core.submit(ask(0, 900, n=20, n_out=120))
        for _ in range(12):
            core.step()
        n_asked = n_live = 1
        for step in range(2500):
            while n_live < 13:
                tokens = 5 + (np.arange(n) + 7 * n_asked) % 50
                told = ProgramRun(n_asked, 20)
                core.submit(EngineRequest(n_asked, tokens, Generate(n_out), run=told))
                n_asked, n_live = n_asked + 1, n_live + 1
            final = [update.id for update in core.step() if update.final]
            n_live -= len(final)
            if 0 in final:
                ended[policy] = step
                break
    assert ended["program"] <= 1.5 * ended["lpm"]


@pytest.mark.parametrize("policy", ["program", "lpm"])
def test_what_runs_do_is_told_to_who_watches(lab, policy: str) -> None:
    core = lab.make_core(max_running=2, policy=policy, lookup=False)
    for request in [ask(0, 40, run=1), ask(1, 30, run=1), ask(2, 8), ask(3, None, run=5),
                    ask(4, None)]:  # fmt: skip
        core.submit(request)
    core.step()
    stats = core.stats()
    assert stats.programs == 3
    assert [run.remaining for run in stats.first_programs] == [8, 30, None]
    assert sum(run.running for run in stats.first_programs) <= 2
    assert stats.first_programs[1].running + stats.first_programs[1].waiting == 2
    assert sum(run.generated_tokens for run in stats.first_programs) == stats.running_requests
    for i in range(40):
        core.submit(ask(10 + i, i))
    assert len(core.stats().first_programs) == 16
    while core.has_work:
        core.step()
    assert (core.stats().programs, core.stats().first_programs) == (0, ())


def test_of_running_requests_that_with_the_most_left_is_preempted(lab) -> None:
    """And the others end as if they had been alone."""
    core = lab.make_core(pool=90, policy="program", lookup=False, headroom_tokens=1)
    requests = [
        ask(0, 40, n=10, n_out=30),
        ask(1, 1000, n=10, n_out=30),
        ask(2, 30, n=10, n_out=30),
    ]
    assert order_of(core, requests)[-1] == 1
    assert core.scheduler.n_preempted > 0


def shares(lies: bool) -> list[bytes]:
    """Whose requests end, in order, where one client claims that nothing is left of its runs."""
    core = _core()
    requests = []
    for i in range(40):
        requests.append(ask(i, 0 if lies else 100, owner=b"liar", n=4))
        requests.append(ask(100 + i, 100, owner=b"honest", n=4))
    owners = {request.id: request.owner for request in requests}
    return [owners[id] for id in order_of(core, requests)]


def _core():
    from engine.core.conftest import make_core

    return make_core(max_running=1, policy="program", lookup=False)


def test_a_client_that_lies_gets_no_more_than_its_share() -> None:
    for lies in (False, True):
        first = shares(lies)[:20]
        assert 8 <= first.count(b"liar") <= 12, first


def test_who_comes_back_has_no_credit_and_no_debt(core) -> None:
    """An owner that was away does not pass all others, and one that came late is not behind."""
    order_of(core, [ask(i, 5, owner=b"busy", n=4) for i in range(30)])
    requests = [ask(i, 5, owner=b"busy", n=4) for i in range(30)]
    requests += [ask(100 + i, 5, owner=b"new", n=4) for i in range(30)]
    first = order_of(core, requests)[:20]
    assert 8 <= sum(id >= 100 for id in first) <= 12, first


@pytest.mark.parametrize("seed", one_in(2, [1, 2]))
def test_no_request_waits_beyond_the_bound(seed) -> None:
    arrivals = vc.flood(seed, n=400, rate=30)
    run = vc.run(arrivals, grace=turns.GRACE, policy="program", pool=16384, max_running=32)
    assert len(run.passed) == 400
    assert all(waited <= allowed for waited, allowed in run.passed)


@pytest.mark.slow
def test_owners_share_by_what_they_were_served(core, monkeypatch) -> None:
    """Not by what was expected of their requests: one asks for twenty times as much as another."""
    monkeypatch.setattr(turns, "GRACE", 10**9)  # else many are served in the order of arrival
    n_out = {b"long": 100, b"short": 5}
    owner_of: dict[int, bytes] = {}
    served = dict.fromkeys(n_out, 0)

    def submit(owner: bytes) -> None:
        owner_of[len(owner_of)] = owner
        core.submit(ask(len(owner_of) - 1, None, owner=owner, n=4, n_out=n_out[owner]))

    for owner in [*n_out] * 12:
        submit(owner)
    for _ in range(2000):
        for update in core.step():
            if update.final:
                owner = owner_of[update.id]
                served[owner] += n_out[owner]
                submit(owner)
    assert served[b"long"] < 1.5 * served[b"short"], served


def test_a_mean_is_charged_for_all_that_it_runs(core, monkeypatch) -> None:
    """Though all of it is cached: 60 positions are run each time, about as long as one token."""
    monkeypatch.setattr(turns, "GRACE", 10**9)
    prompt = np.arange(3, 63)
    order_of(core, [EngineRequest(0, prompt, Commit())])
    means = [EngineRequest(i, prompt, Embed("mean"), owner=b"means") for i in range(1, 9)]
    lasts = [EngineRequest(10 + i, prompt, Embed("last"), owner=b"lasts") for i in range(8)]
    order = order_of(core, [*means, *lasts])
    assert max(order.index(last.id) for last in lasts) < order.index(means[2].id)
