"""A flood of requests with one hot prefix and a few cold ones: who waits how long?

    python -P benches/engine/fairness.py [--model S] [--folder FOLDER] [--seeds 5] [--out FILE.json]

First it runs on a virtual clock (`tests/support/virtual_clock.py`), with the same figures on every
machine; then once on a real model, with 1.2 times the arrivals that it can serve. Policies: lpm
with the bound on waiting, lpm without it, first come first served.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))

import models
import virtual_clock as clock
from drive import be_tuned
from peers import machine

from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.scheduling import turns
from sgc.runtime.engine.step.core import EngineCore

NEVER = 10**9
OVERLOAD = 1.2
POLICIES = {"lpm": ("lpm", turns.GRACE), "unbounded": ("lpm", NEVER), "fcfs": ("fcfs", NEVER)}
FLOODS: dict[str, dict[str, Any]] = {
    "one hot prefix": {"n": 1500, "rate": 30, "n_groups": 1, "pool": 16384, "max_running": 32},
    "eight, of which three fit": {
        "n": 1500, "rate": 20, "n_groups": 8, "pool": 4096, "max_running": 16,
    },
}  # fmt: skip


def simulated(seeds: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, settings in FLOODS.items():
        runs: dict[str, list[clock.Run]] = {policy: [] for policy in POLICIES}
        for seed in range(seeds):
            for policy in POLICIES:
                runs[policy].append(_simulate(seed, policy, dict(settings)))
        found[name] = {policy: _summary(of) for policy, of in runs.items()}
        print(name)
        for policy, row in found[name].items():
            print(f"  {policy:10} {_line(row)}")
    return found


def _simulate(seed: int, policy: str, settings: dict[str, Any]) -> clock.Run:
    flood = {key: settings.pop(key) for key in ("n", "rate", "n_groups")}
    name, turns.GRACE = POLICIES[policy]
    arrivals = clock.flood(seed, **flood)
    return clock.run(arrivals, grace=turns.GRACE, policy=name, **settings)


def _summary(runs: Sequence[clock.Run]) -> dict[str, float]:
    worst = [max(waited / allowed for waited, allowed in run.passed) for run in runs]
    return {
        "seconds": float(np.mean([run.seconds for run in runs])),
        "hit_rate": float(np.mean([run.hit_rate for run in runs])),
        "of_bound": max(worst),
        **{
            f"{kind}_p{p}_s": float(np.mean([run.percentile_s(kind, p) for run in runs]))
            for kind in ("hot", "cold")
            for p in (50, 99)
        },
    }


def _line(row: dict[str, float]) -> str:
    return (
        f"{row['seconds']:7.1f} s  hit {100 * row['hit_rate']:.1f}%  cold p50 "
        f"{row['cold_p50_s']:.2f} p99 {row['cold_p99_s']:.2f} s  hot p50 {row['hot_p50_s']:.2f} "
        f"p99 {row['hot_p99_s']:.2f} s  of the bound {row['of_bound']:.2f}"
    )


def real(name: str, folder: Path) -> dict[str, Any]:
    from sgc.runtime.engine.model.loading import load_model

    runner = load_model(str(models.make(name, folder)), pool_tokens=16384)
    at_once = clock.flood(7, n=400, rate=1e6)
    _flood_run(runner, "fcfs", at_once)  # warm-up
    rate = OVERLOAD * 400 / _flood_run(runner, "fcfs", at_once).seconds
    arrivals = clock.flood(8, n=2000, rate=rate)
    found = {policy: _summary([_flood_run(runner, policy, arrivals)]) for policy in POLICIES}
    print(f"{name}, for real, {rate:.0f} arrivals a second")
    for policy, row in found.items():
        print(f"  {policy:10} {_line(row)}")
    return found


def _flood_run(runner: Any, policy: str, arrivals: Sequence[clock.Arrival]) -> clock.Run:
    name, turns.GRACE = POLICIES[policy]
    core = EngineCore(
        runner,
        pool_tokens=runner.pool_tokens,
        max_context=runner.max_context,
        vocab_size=runner.vocab_size,
        policy=name,
        max_running=32,
    )
    run, begin, at = clock.Run(), time.perf_counter(), 0
    while at < len(arrivals) or core.has_work:
        now = time.perf_counter() - begin
        while at < len(arrivals) and arrivals[at].at_s <= now:
            tokens = np.array(arrivals[at].tokens, np.int64)
            core.submit(EngineRequest(at, tokens, Generate(arrivals[at].max_tokens)))
            at += 1
        for update in core.step():
            if update.final:
                assert update.usage is not None, update.error
                waits = run.waits_s.setdefault(arrivals[update.id].kind, [])
                waits.append(update.usage.queue_s)
    run.seconds = time.perf_counter() - begin
    counters = core.stats().counters
    run.hit_rate = counters.cached_tokens / counters.prompt_tokens
    run.passed = [(0, 1)]  # only counted on the virtual clock
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="S")
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    be_tuned()
    found = {"machine": machine(), "virtual": simulated(options.seeds)}
    found["real"] = {options.model: real(options.model, options.folder)}
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
