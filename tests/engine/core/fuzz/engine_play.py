"""Fake engines that are given requests, and cancels, flushes and faults on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from engine.core.conftest import Outcome, make_core, make_model
from engine.core.fuzz.engine_requests import VOCAB, Answer
from engine.core.with_states import WithStates

from sgc.runtime.engine.requests.request import EngineRequest
from sgc.runtime.engine.scheduling.lookup import Lookup
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.step.counts import Counters

AMPLE = 4096


@dataclass(frozen=True)
class Setup:
    """per_step: requests that arrive before each step (None: all before the first). state_slots: of
    a model with recurrent layers; 0: it has none.

    cancels, flushes, faults: how likely each is before or in a step.
    """

    pool: int = AMPLE
    chunk: int = 64
    max_running: int = 256
    per_step: int | None = None
    policy: str = "lpm"
    cache: str = "radix"
    shares_in_batch: bool = True
    headroom: int = 0
    cancels: float = 0
    flushes: float = 0
    faults: float = 0
    lookup: bool = True
    state_slots: int = 0

    @property
    def is_calm(self) -> bool:
        return self.cancels == self.faults == 0


class Fault(RuntimeError):
    pass


class Watched:
    """A fake model that counts what it runs, and fails now and then."""

    def __init__(self, setup: Setup, rng: np.random.Generator) -> None:
        model = make_model(setup.pool, VOCAB)
        self._model = WithStates(model, setup.state_slots) if setup.state_slots else model
        self._setup, self._rng = setup, rng
        self.n_run = 0

    def run(self, batch):
        self._note(batch)
        return self._model.run(batch)

    def hidden(self, batch):
        self._note(batch)
        return self._model.hidden(batch)

    def _note(self, batch) -> None:
        assert batch.n_tokens > 0
        # Choices' beginnings run again where states are kept.
        assert batch.n_tokens <= self._setup.chunk or self._setup.state_slots
        if self._setup.faults and self._rng.random() < self._setup.faults:
            raise Fault
        self.n_run += batch.n_tokens


@dataclass
class Played:
    core: EngineCore
    forward: Watched
    outcomes: dict[int, Outcome]
    cancelled: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    counters: Counters = field(default_factory=Counters)

    def check_counters(self) -> None:
        """They add up, and only grow."""
        before, self.counters = asdict(self.counters), self.core.stats().counters
        now = asdict(self.counters)
        assert all(now[name] >= before[name] for name in now), f"{before} became {now}"
        assert now["prompt_tokens"] == now["cached_tokens"] + now["computed_tokens"]

    def take(self, updates) -> None:
        for update in updates:
            outcome = self.outcomes[update.id]
            assert update.id not in self.cancelled, "something was said of a cancelled request"
            assert outcome.last is None, "something was said after the end"
            outcome.ids += update.new_ids
            if update.final:
                outcome.last = update
            if update.error is not None:
                assert update.error.message == "a fault", update.error
                self.failed.add(update.id)


class HalfRight(Lookup):
    """Guesses that are often right, as few are of texts made of hashes."""

    def __init__(self, core: EngineCore, setup: Setup, right: Mapping[int, Answer], seed: int):
        super().__init__(core.cache, setup.chunk, core.limits.longest)
        self._right, self._rng = right, np.random.default_rng(seed)

    def _proposed(self, work, guesses, n):
        if self._rng.random() < 0.3:
            return super()._proposed(work, guesses, n)
        ids = list(self._right[work.request.id].ids[work.n_generated :][:n])
        ids += self._rng.integers(2, VOCAB, n - len(ids)).tolist()
        return [i if self._rng.random() < 0.8 else int(self._rng.integers(2, VOCAB)) for i in ids]


def play(
    requests: Sequence[EngineRequest],
    setup: Setup,
    seed: int = 0,
    right: Mapping[int, Answer] | None = None,
) -> Played:
    """Runs to the end, with whatever the setup has happen on the way. right: the answers, of which
    some guesses are made."""
    rng = np.random.default_rng(seed)
    forward = Watched(setup, rng)
    core = make_core(
        forward=forward,
        pool=setup.pool,
        vocab=VOCAB,
        chunk_tokens=setup.chunk,
        max_running=setup.max_running,
        policy=setup.policy,
        cache=setup.cache,
        shares_in_batch=setup.shares_in_batch,
        headroom_tokens=setup.headroom,
        lookup=setup.lookup,
        state_slots=setup.state_slots,
    )
    if setup.lookup and right is not None and not setup.state_slots:
        core.scheduler._lookup = HalfRight(core, setup, right, seed)
    played = Played(core, forward, {r.id: Outcome() for r in requests})
    todo, idle, has_failed = list(requests), 0, False
    while todo or core.has_work:
        n = len(todo) if setup.per_step is None else setup.per_step
        for r in todo[:n]:
            core.submit(r)
        del todo[:n]
        if not has_failed:  # else there is something to be said first
            _disturb(played, setup, rng, requests[: len(requests) - len(todo)])
        before = forward.n_run
        played.check_counters()
        try:
            updates = core.step()
            has_failed = False
        except Fault:
            core.fail("a fault")
            forward.n_run = before  # a first pass of the step counts for nothing, either
            core.check()
            has_failed = True
            continue
        played.take(updates)
        assert core.stats().running_requests <= setup.max_running
        idle = 0 if updates or forward.n_run > before else idle + 1
        assert idle < 3 + len(requests), "the engine does not come to an end"
    played.check_counters()
    return played


def _disturb(played: Played, setup: Setup, rng: np.random.Generator, submitted) -> None:
    core = played.core
    if setup.cancels and rng.random() < setup.cancels:
        id = submitted[rng.integers(0, len(submitted))].id
        core.cancel(id)
        core.check()
        if played.outcomes[id].last is None and id not in played.failed:
            played.cancelled.add(id)
    if setup.flushes and rng.random() < setup.flushes:
        core.flush_cache()
        core.check()
