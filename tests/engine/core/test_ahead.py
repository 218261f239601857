"""Steps that are sent before the tokens of the ones before are known: a model that works like a
device's gives the same answers, and nothing is left behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from engine.core.conftest import END, drive, make_core, make_model, request
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.request import Commit, Generate, SamplingParams, Score, Stops
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.step.host_logits import HostLogits


@dataclass
class Drawn:
    """Known to the device at once; the host must wait."""

    on_device: list[int]
    n_waits: int = 0

    def wait(self) -> list[int]:
        self.n_waits += 1
        return self.on_device


class DeviceLogits(HostLogits):
    """They are gone once the next step has begun, as a graph's memory is."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(values.copy())

    def begin_draw(self, at: Sequence[int], draws: Sequence[Draw]) -> Drawn:
        tokens = []
        for row, draw in zip(at, draws, strict=True):
            is_faulty = np.isnan(self._values[row]).any()
            tokens.append(-1 if is_faulty else self.draw([row], [draw])[0])
        return Drawn(tokens)

    def forget(self) -> None:
        self._values[:] = np.nan


@dataclass
class Device:
    """An `AsyncForward` around the fake model. n_after: steps that ran after unknown tokens."""

    model: object
    n_after: int = 0
    fails_at: int = -1
    poisoned: set[int] = field(default_factory=set)  # whose logits are no numbers
    last: DeviceLogits | None = None
    takes_drawn = True

    def run(self, batch: FlatBatch) -> DeviceLogits:
        if self.last is not None:
            self.last.forget()
        values = self.model.run(batch)
        for row, index in enumerate(batch.logit_index):
            if int(batch.token_ids[index]) in self.poisoned:
                values[row] = np.nan
        self.last = DeviceLogits(values)
        return self.last

    def run_after(self, batch: FlatBatch, drawn: Drawn, rows: Sequence[int]) -> DeviceLogits:
        assert drawn.n_waits == 0, "the host waited before it sent the next step"
        self.n_after += 1
        if self.n_after == self.fails_at:
            raise RuntimeError("the device fails")
        tokens = np.array([drawn.on_device[row] for row in rows], np.int64)
        return self.run(replace(batch, token_ids=tokens))


def core_on(device: Device, **options: object) -> EngineCore:
    return make_core(forward=device, is_ahead=True, **options)


def device(pool: int = 4096, **options: object) -> Device:
    return Device(make_model(pool), **options)


KINDS = st.one_of(
    st.builds(
        Generate,
        max_tokens=st.integers(1, 30),
        params=st.builds(
            SamplingParams, temperature=st.sampled_from([0.0, 0.9]), seed=st.integers(0, 50),
            frequency_penalty=st.sampled_from([0.0, 0.0, 0.0, 0.5]),
        ),
        min_tokens=st.integers(0, 3),
        stop=st.sampled_from([Stops(), Stops(), Stops(("丂",))]),
        stop_ids=st.sampled_from([(), (END,)]),
    ),
    st.just(Score(((5, 6), (5, 7, 8)))),
    st.just(Commit()),
)  # fmt: skip


@st.composite
def workloads(draw: st.DrawFn) -> list:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    trunk = rng.integers(3, 900, 80)
    kinds = draw(st.lists(KINDS, min_size=1, max_size=14))
    return [
        request(i, [*trunk[: rng.integers(0, 80)], *rng.integers(3, 900, 1 + i % 4)], kind)
        for i, kind in enumerate(kinds)
    ]


@examples(200)
@given(workloads(), st.integers(1, 6), st.sampled_from([200, 4096]), st.booleans())
def test_answers_are_the_same(work: list, per_step: int, pool: int, lookup: bool) -> None:
    ahead = core_on(device(pool), pool=pool, max_context=180, lookup=lookup)
    plain = make_core(pool=pool, max_context=180)
    got = {i: one.answer for i, one in drive(ahead, work, per_step=per_step).items()}
    assert got == {i: one.answer for i, one in drive(plain, work, per_step=per_step).items()}
    assert ahead.stats().counters.positions_run == plain.stats().counters.positions_run
    ahead.flush_cache()
    assert ahead.stats().free_tokens == pool


def test_a_batch_of_generations_is_sent_ahead() -> None:
    """All but the steps of prompts, and the one after which a request's limit is reached."""
    one = device()
    core = core_on(one, lookup=False)
    asked = [request(i, [5, 6, 7 + i], Generate(20)) for i in range(8)]
    found = drive(core, asked)
    assert all(len(outcome.ids) == 20 for outcome in found.values())
    assert one.n_after == 18
    assert core.stats().counters.speculated_tokens == 0


def test_a_text_that_ends_has_run_one_position_in_vain() -> None:
    one = device()
    core = core_on(one, lookup=False)
    plain = drive(make_core(), [request(0, [5, 6, 7], Generate(40))])[0].ids
    stop = plain[10]
    first = plain.index(stop)
    found = drive(core, [request(0, [5, 6, 7], Generate(40, stop_ids=(stop,)))])[0]
    assert found.ids == plain[: first + 1]
    counters = core.stats().counters
    assert counters.positions_run == 3 + first
    assert counters.speculated_tokens == 1


@pytest.mark.parametrize("n_steps", [1, 2, 3, 7])
def test_a_cancelled_request_leaves_nothing(n_steps: int) -> None:
    one = device()
    core = core_on(one, lookup=False)
    for i in range(3):
        core.submit(request(i, [5, 6, 7 + i], Generate(40)))
    for _ in range(n_steps):
        core.step()
    for i in range(3):
        core.cancel(i)
    while core.has_work:
        assert core.step() == []
    core.flush_cache()
    assert core.stats().free_tokens == core.limits.pool_tokens
    assert len(drive(core, [request(9, [5, 6, 7], Generate(5))])[9].ids) == 5


@pytest.mark.parametrize("fails_at", [1, 2, 5])
def test_a_device_that_fails_ends_its_requests(fails_at: int) -> None:
    core = core_on(device(fails_at=fails_at), lookup=False)
    for i in range(3):
        core.submit(request(i, [5, 6, 7 + i], Generate(40)))
    ended = {}
    while core.has_work:
        try:
            updates = core.step()
        except RuntimeError as error:
            core.fail(str(error))
            continue
        ended |= {update.id: update.error for update in updates if update.final}
    assert [error.message for error in ended.values()] == ["the device fails"] * 3
    core.flush_cache()
    assert core.stats().free_tokens == core.limits.pool_tokens


def test_a_row_that_is_no_number_ends_its_request_alone() -> None:
    plain = drive(make_core(), [request(i, [5, 6, 7 + i], Generate(12)) for i in range(3)])
    own = [t for t in plain[1].ids[3:9] if t not in plain[0].ids and t not in plain[2].ids]
    core = core_on(device(poisoned={own[0]}), lookup=False)
    found = drive(core, [request(i, [5, 6, 7 + i], Generate(12)) for i in range(3)])
    assert "not finite numbers" in found[1].last.error.message
    assert [found[i].ids for i in (0, 2)] == [plain[i].ids for i in (0, 2)]


@pytest.mark.parametrize("is_ahead", [False, True])
def test_time_of_the_model_is_not_that_of_deciding(is_ahead: bool) -> None:
    core = core_on(device(), lookup=False) if is_ahead else make_core()
    choose = core.scheduler.choose

    def slow() -> list:
        time.sleep(0.1)
        return choose()

    core.scheduler.choose = slow
    drive(core, [request(0, [5, 6, 7], Generate(3))])
    assert 0 < core.stats().counters.forward_s < 0.1
