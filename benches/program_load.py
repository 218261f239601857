"""Programs that arrive one by one: how long they take by each policy of the engine.

    python -P benches/program_load.py [--programs 10000] [--seeds 3] [--loads 0.5,0.8,0.95]
        [--pools 4096,8192,131072] [--heavy] [--jobs 2] [--model FOLDER] [--at-once 1500]
        [--out FILE.json]

It runs our engine's own scheduler, tree and step loop on a virtual clock (a step takes 30 ms, and
0.4 ms more for each position), with a fake model. Arrivals are Poisson, at shares of the rate at
which as many programs as --at-once end that are all there at once (by `lpm`, in the same pool).
--heavy: ten programs at a time on average, and lengths whose logarithms spread twice as far.
--model: a real model, whose steps take the time that they take here; tools still wait on the
virtual clock.

Policies: lpm and fcfs, without hints; marks: lpm, told which prefixes nothing goes on from;
attained: what a run was served so far, as Autellix; program: what is left of a run, as its graph
tells and lengths are expected, and the marks; oracle: the same with the lengths as they will be;
room: lpm at the same rate in a pool that holds everything, which no policy can do better than by
much. Times are from a program's arrival to its last reply; `held` is the pool's share of the tokens
that live programs have.
"""

from __future__ import annotations

import argparse
import datetime
import heapq
import itertools
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent / "engine"))

from drive import be_tuned
from programs_of_load import N_OWN, VOCAB, Program, programs

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.requests.request import EngineRequest, Generate, ProgramRun, Update
from sgc.runtime.engine.step.core import EngineCore

STEP_S, POSITION_S = 0.030, 0.0004  # about a model of 0.5 billion parameters on two cores
POLICIES = {"lpm": "lpm", "marks": "lpm", "fcfs": "fcfs", "attained": "program",
            "program": "program", "oracle": "program", "room": "lpm"}  # fmt: skip
ROOM = 131_072


@dataclass
class Measured:
    """times_s: of each program, from arrival to end. held: the pool's share of live tokens."""

    times_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    hit_rate: float = 0.0
    n_preempted: int = 0
    held: float = 0.0


class Live:
    """A program that has arrived."""

    def __init__(self, number: int, program: Program, is_told: bool) -> None:
        self.number, self.program = number, program
        self.remaining = program.remaining(is_told)
        self.tokens: list[list[int]] = [[] for _ in program.calls]
        self.open = set(range(len(program.calls)))
        self.begun: set[int] = set()

    def ready(self) -> list[int]:
        """The calls that may begin now, which have not."""
        return [i for i in sorted(self.open - self.begun)
                if self.open.isdisjoint(self.program.calls[i].after)]  # fmt: skip

    def n_reusable(self, number: int) -> int | None:
        """The last-use mark of a call: None if another goes on from its end."""
        calls, left = self.program.calls, self.open - {number}
        if any(calls[i].base == number for i in left):
            return None
        n_beginning = len(self.program.beginning)
        return n_beginning if left else n_beginning - N_OWN

    def prompt(self, number: int, rng: np.random.Generator) -> list[int]:
        call = self.program.calls[number]
        base = self.program.beginning if call.base is None else self.tokens[call.base]
        return [*base, *rng.integers(3, VOCAB, call.n_new).tolist()]


class _LiveTokens:
    """The distinct tokens of live programs, averaged over time."""

    def __init__(self) -> None:
        self._beginnings: Counter[tuple[int, ...]] = Counter()
        self._now, self._sum = 0, 0.0

    def begin(self, program: Program) -> None:
        shared = program.beginning[:-N_OWN]
        self._now += N_OWN + (len(shared) if self._beginnings[shared] == 0 else 0)
        self._beginnings[shared] += 1

    def add(self, n_tokens: int) -> None:
        self._now += n_tokens

    def end(self, program: Program) -> None:
        shared = program.beginning[:-N_OWN]
        self._beginnings[shared] -= 1
        own = N_OWN + sum(call.n_new + call.n_out for call in program.calls)
        self._now -= own + (len(shared) if self._beginnings[shared] == 0 else 0)

    def passed(self, seconds: float) -> None:
        self._sum += self._now * seconds

    def mean(self, seconds: float) -> float:
        return self._sum / seconds


class Driver:
    """model: the folder of a real model, "" for a fake one in virtual time."""

    def __init__(
        self, todo: Sequence[Program], policy: str, pool: int, running: int, model: str
    ) -> None:
        self.is_real = bool(model)
        forward: Any = FakeModel(pool, VOCAB)
        vocab_size, max_context = VOCAB, 8192
        if self.is_real:
            from sgc.runtime.engine.model.loading import load_model

            forward = load_model(model, pool_tokens=pool)
            vocab_size, max_context = forward.vocab_size, forward.max_context
        self.core = EngineCore(
            forward, pool_tokens=pool, max_context=min(pool, max_context), vocab_size=vocab_size,
            policy=POLICIES[policy], max_running=running, lookup=False,
        )  # fmt: skip
        self.policy = policy
        self.now = 0.0
        self.rng = np.random.default_rng(0)
        self.events: list[tuple[float, int, Live, int | None]] = []
        self.n_events = itertools.count()
        for number, program in enumerate(todo):
            self._later(program.at_s, Live(number, program, policy == "oracle"), None)
        self.running: dict[int, tuple[Live, int]] = {}
        self.n_asked = 0
        self.pool, self.live_tokens = pool, _LiveTokens()
        self.found = Measured()

    def run(self) -> Measured:
        while self.events or self.core.has_work:
            if not self.core.has_work:
                self._pass(max(0.0, self.events[0][0] - self.now))
            while self.events and self.events[0][0] <= self.now:
                _, _, live, number = heapq.heappop(self.events)
                self._arrive(live) if number is None else self._ask(live, number)
            for update in self._step():
                assert update.error is None, update.error
                live, number = self.running[update.id]
                live.tokens[number] += update.new_ids
                self.live_tokens.add(len(update.new_ids))
                if update.final:
                    del self.running[update.id]
                    self._end(live, number)
        sums = self.core.stats().counters
        self.found.seconds = self.now
        self.found.hit_rate = sums.cached_tokens / sums.prompt_tokens
        self.found.n_preempted = self.core.scheduler.n_preempted
        self.found.held = self.pool / self.live_tokens.mean(self.now)
        return self.found

    def _step(self) -> Sequence[Update]:
        if self.is_real:
            begin_s = time.perf_counter()
            updates = self.core.step()
            self._pass(time.perf_counter() - begin_s)
            return updates
        before = self.core.stats().counters.positions_run
        updates = self.core.step()
        n_run = self.core.stats().counters.positions_run - before
        self._pass(STEP_S + POSITION_S * n_run)
        return updates

    def _pass(self, seconds: float) -> None:
        self.now += seconds
        self.live_tokens.passed(seconds)

    def _arrive(self, live: Live) -> None:
        self.live_tokens.begin(live.program)
        self._begin(live)

    def _begin(self, live: Live) -> None:
        for number in live.ready():
            live.begun.add(number)
            wait_s = live.program.calls[number].wait_s
            if wait_s:
                self._later(self.now + wait_s, live, number)
            else:
                self._ask(live, number)

    def _later(self, at_s: float, live: Live, number: int | None) -> None:
        """A call begins then, or with number None the program arrives."""
        heapq.heappush(self.events, (at_s, next(self.n_events), live, number))

    def _ask(self, live: Live, number: int) -> None:
        call = live.program.calls[number]
        live.tokens[number] = live.prompt(number, self.rng)
        left = None if self.policy == "attained" else live.remaining[number]
        run = (
            None
            if self.policy in ("lpm", "marks", "fcfs", "room")
            else ProgramRun(live.number, left)
        )
        is_marked = self.policy in ("marks", "program", "oracle")
        self.running[self.n_asked] = live, number
        self.live_tokens.add(call.n_new)
        self.core.submit(EngineRequest(
            self.n_asked, np.array(live.tokens[number], np.int64), Generate(call.n_out), run=run,
            n_reusable=live.n_reusable(number) if is_marked else None,
        ))  # fmt: skip
        self.n_asked += 1

    def _end(self, live: Live, number: int) -> None:
        live.open.discard(number)
        if live.open:
            self._begin(live)
        else:
            self.found.times_s.append(self.now - live.program.at_s)
            self.live_tokens.end(live.program)


@dataclass(frozen=True, slots=True)
class _Case:
    policy: str
    seed: int
    n: int
    rate: float
    pool: int
    running: int
    is_heavy: bool
    model: str


def measured(case: _Case) -> Measured:
    todo = programs(case.seed, case.n, case.rate, case.is_heavy)
    pool = ROOM if case.policy == "room" else case.pool
    return Driver(todo, case.policy, pool, case.running, case.model).run()


def figures(runs: Sequence[Measured]) -> dict[str, float]:
    times = np.concatenate([run.times_s for run in runs])
    found = {
        "mean_s": times.mean(),
        **{f"p{p}_s": np.percentile(times, p) for p in (50, 90, 99)},
        "hit_rate": np.mean([run.hit_rate for run in runs]),
        "preempted": np.mean([run.n_preempted for run in runs]),
        "held": np.mean([run.held for run in runs]),
    }
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--loads", default="0.5,0.8,0.95")
    parser.add_argument("--pools", default="4096,8192,131072")
    parser.add_argument("--running", type=int, default=256, help="requests at once, at most")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--heavy", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes; runs are the same")
    parser.add_argument("--model", default="", help="its steps are timed: no other jobs beside it")
    parser.add_argument("--at-once", type=int, default=1500)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.model:
        be_tuned()
    report: dict[str, Any] = {
        "command": " ".join(["python -P benches/program_load.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "found": {},
    }
    with ProcessPoolExecutor(given.jobs) as processes:
        run_all = map if given.jobs == 1 else processes.map
        for pool in map(int, given.pools.split(",")):
            at_once = _Case("lpm", 99, given.at_once, math.inf, pool, given.running, given.heavy,
                            given.model)  # fmt: skip
            rate = given.at_once / measured(at_once).seconds
            for load in map(float, given.loads.split(",")):
                name = f"pool of {pool}, {load:.0%}"
                rows: dict[str, Any] = {"programs_a_second": float(f"{load * rate:.4g}")}
                report["found"][name] = rows
                for policy in given.policies.split(","):
                    cases = [replace(at_once, policy=policy, seed=seed, n=given.programs,
                                     rate=load * rate) for seed in range(given.seeds)]  # fmt: skip
                    rows[policy] = figures(list(run_all(measured, cases)))
                    print(f"{pool} {load:4.0%} {policy:9} {rows[policy]}", flush=True)
                    if given.out is not None:
                        text = json.dumps(report, indent=1) + "\n"
                        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
