"""Agents that come back after tools, in pools that hold a part of what they have.

    python -P benches/small_pools.py [--agents 64] [--programs 400] [--shares 0.1,0.25,0.5]
        [--shapes agent] [--seeds 2] [--out FILE.json]

So many programs are there at once, and another begins when one ends; a call comes 0.2 to 2 s after
the one before it. The clock is virtual (`program_load.py`). The pool is a share of the tokens that
live programs have, on average, where there is room for everything. `age`: eviction by last use
alone, longest prefix first (`lpm`, told nothing); `marks`: lpm, told what nothing goes on from;
`program`: the default. of_best: the tokens found cached, as a share of what an eviction that knows
the future finds with the same admissions (`engine/bounded.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent / "engine"))

from bounded import Admitted, Ended, Event, most_cached
from program_load import ROOM, Driver, Live
from programs_of_load import SHAPES, Program, programs

from sgc.runtime.engine.requests.request import State, Update, Work

POLICIES = {"age": "lpm", "marks": "marks", "program": "program"}
MAX_RUNNING = 256


@dataclass
class Found:
    """Counts of tokens over all admissions."""

    events: list[Event] = field(default_factory=list)
    n_cached: int = 0
    n_tokens: int = 0


class ClosedLoop(Driver):
    """A program begins when one ends."""

    def __init__(self, todo: Sequence[Program], policy: str, pool: int, width: int) -> None:
        first = [replace(program, at_s=0.0) for program in todo[:width]]
        super().__init__(first, policy, pool, MAX_RUNNING, "")
        self._todo = iter(todo[width:])
        self._n_begun = width
        self.cache = Found()
        self._works: dict[int, Work] = {}  # that were admitted
        self._admit = self.core.scheduler.admit
        self.core.scheduler.admit = self._noted

    def _noted(self, now: float) -> list[Work]:
        admitted = self._admit(now)
        for work in admitted:
            self._works[work.request.id] = work
            tokens = tuple(work.tokens.view.tolist())
            self.cache.events.append(Admitted(work.request.id, tokens, work.n_matchable))
            self.cache.n_cached += work.n_computed
            self.cache.n_tokens += len(tokens)
        return admitted

    def _step(self) -> Sequence[Update]:
        updates = super()._step()
        for id, work in [*self._works.items()]:
            if work.state is not State.RUNNING:  # it ended, or was preempted
                del self._works[id]
                self.cache.events.append(Ended(id, tuple(work.tokens.view.tolist())))
        return updates

    def _end(self, live: Live, number: int) -> None:
        super()._end(live, number)
        if not live.open and (program := next(self._todo, None)) is not None:
            self._later(self.now, Live(self._n_begun, replace(program, at_s=self.now), False), None)
            self._n_begun += 1


def measure(policy: str, pool: int, width: int, todo: Sequence[Program]) -> dict[str, float]:
    driver = ClosedLoop(todo, POLICIES[policy], pool, width)
    run, cache = driver.run(), driver.cache
    best = most_cached(cache.events, pool)
    return {
        "hit_rate": cache.n_cached / cache.n_tokens,
        "of_best": cache.n_cached / best,
        "mean_s": float(np.mean(run.times_s)),
        "programs_a_second": len(todo) / run.seconds,
        "held": run.held,
    }


def room_needed(width: int, todo: Sequence[Program]) -> float:
    """The tokens that live programs have where there is room for everything."""
    return ROOM / ClosedLoop(todo, "lpm", ROOM, width).run().held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--shares", default="0.1,0.25,0.5")
    parser.add_argument("--shapes", default="agent", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for shape in set(SHAPES) - set(given.shapes.split(",")):
        del SHAPES[shape]
    batches = [programs(seed, given.programs, 1.0) for seed in range(given.seeds)]
    needed = np.mean([room_needed(given.agents, todo) for todo in batches])
    rows: dict[str, Any] = {}
    for share in map(float, given.shares.split(",")):
        pool = int(share * needed)
        for policy in POLICIES:
            found = [measure(policy, pool, given.agents, todo) for todo in batches]
            row = {
                name: float(f"{np.mean([each[name] for each in found]):.4g}") for name in found[0]
            }
            rows.setdefault(f"pool of {pool}, {share:.0%}", {})[policy] = row
            print(f"{pool:6} {share:4.0%} {policy:8} {row}", flush=True)
    if given.out is not None:
        command = " ".join(["python -P benches/small_pools.py", *sys.argv[1:]])
        given.out.write_text(json.dumps({"command": command, "found": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
