"""Requests to many engines: simulated fleets by five ways to choose an engine.

    python -P benches/scale.py [--engines 1,2,4,16,64] [--programs 60] [--groups 16] [--pool 8192]
        [--policies "round robin,sgc"] [--at-once 12] [--load 0.8] [--seeds 1] [--out FILE.json]

**A simulation**: engines run on a virtual clock, a step takes 30 ms and 0.4 ms more for each
position (a model of 0.5 billion parameters on two cores), and evict the least recently used blocks.
The programs are those of `program_load.py`; --groups: how many beginnings each shape has for an
engine, so that the fleet's work grows with it. --programs: for each engine; with --load 0 none
arrive one by one.

`programs/s`: with --at-once programs an engine, a new one for each that ends, until the last has
begun. `mean` and `p99`: programs that arrive one by one at --load of the rate at which the last
policy ends them; `balance`: the busiest engine's time then, over the mean. `hits`: the share of
prompt tokens found cached. `one cache`: the optimum, engines that read each other's pools at once
and for nothing; `everything`: its hits if nothing were ever evicted. `us`: of a choice;
`looked_at`, in the JSON: engines that one of ours looks at.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

import programs_of_load
from fleet.policies import POLICIES, LeastLoaded
from fleet.running import Outcome, run
from fleet.simulated import BLOCK, Engine, Pool
from programs_of_load import programs

EVERYTHING = 1 << 40
OPTIMUM = "one cache"


class Timed:
    """A policy, and the seconds that its choices took."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.seconds, self.n = policy, 0.0, 0

    def send(self, blocks: Any, n_out: float) -> Any:
        begun = time.perf_counter()
        found = self.policy.send(blocks, n_out)
        self.seconds += time.perf_counter() - begun
        self.n += 1
        return found

    def done(self, note: Any, found: int) -> None:
        begun = time.perf_counter()
        self.policy.done(note, found)
        self.seconds += time.perf_counter() - begun


def fleet(kind: str, work: list[Any], n: int, pool: int, at_once: int) -> tuple[Outcome, Timed]:
    """One run of a policy with fresh engines."""
    n_blocks = pool // BLOCK
    if kind == OPTIMUM:
        shared = Pool(n * n_blocks)
        engines, policy = [Engine(shared) for _ in range(n)], Timed(LeastLoaded(n, n_blocks))
    else:
        engines = [Engine(Pool(n_blocks)) for _ in range(n)]
        policy = Timed(POLICIES[kind](n, n_blocks))
    return run(work, engines, policy, at_once), policy


def measure(args: argparse.Namespace, n: int, seed: int) -> list[dict[str, Any]]:
    programs_of_load.N_GROUPS = args.groups * n
    work = programs(seed, args.programs * n, rate=1.0)
    everything, _ = fleet(OPTIMUM, work, n, EVERYTHING, args.at_once * n)
    rows: list[dict[str, Any]] = []
    for kind in [*reversed(args.policies), OPTIMUM]:
        closed, policy = fleet(kind, work, n, args.pool, args.at_once * n)
        row = {
            "engines": n, "seed": seed, "policy": kind,
            "programs_per_s": closed.n_ended / closed.seconds, "hits": closed.hits,
            "everything": everything.hits,
            "choice_us": policy.seconds / policy.n * 1e6,
        }  # fmt: skip
        if kind == "sgc":
            row["looked_at"] = policy.policy.router.n_seen / policy.n
        if args.load:
            rate = rows[0]["rate"] if rows else args.load * row["programs_per_s"]
            opened, _ = fleet(kind, programs(seed, len(work), rate), n, args.pool, 0)
            row |= {
                "rate": rate, "hits_open": opened.hits, "mean_s": float(np.mean(opened.times_s)),
                "balance": max(opened.busy) / float(np.mean(opened.busy)),
                "p99_s": float(np.percentile(opened.times_s, 99)),
            }  # fmt: skip
        rows.append(row)
        print(_line(row), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    told = (
        f"{row['engines']:5} {row['policy']:13} {row['programs_per_s']:8.2f} programs/s  hits "
        f"{row['hits']:.3f} (everything {row['everything']:.3f})  {row['choice_us']:.0f} us"
    )
    if "mean_s" not in row:
        return told
    return (
        f"{told}  balance {row['balance']:.2f}  mean {row['mean_s']:.1f} s  p99 "
        f"{row['p99_s']:.0f} s  hits {row['hits_open']:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", default="1,2,4,16,64")
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--pool", type=int, default=8192)
    parser.add_argument("--policies", default=",".join(POLICIES), type=lambda text: text.split(","))
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.at_once >= args.programs:
        parser.error(
            f"--programs {args.programs} must be more than --at-once {args.at_once}: what is "
            "measured is the time until the last program begins, when others have ended"
        )
    rows: list[dict[str, Any]] = []
    for seed in range(args.seeds):
        for n in map(int, args.engines.split(",")):
            rows += measure(args, n, seed)
            if args.out:
                told = {"command": " ".join(sys.argv), "rows": rows}
                args.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
