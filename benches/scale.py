"""Requests to many engines: simulated fleets by five ways to choose an engine.

    python -P benches/scale.py [--engines 1,2,4,16,64] [--programs 60] [--groups 16] [--pool 8192]
        [--policies "round robin,sgc"] [--at-once 12] [--load 0.8] [--seed 0] [--out FILE.json]

**A simulation**: engines run on a virtual clock, a step takes 30 ms and 0.4 ms more for each
position (a model of 0.5 billion parameters on two cores), and evict the least recently used blocks.
The programs are those of `program_load.py`; --groups: how many beginnings each shape has for an
engine, so that the fleet's work grows with it. --programs: for each engine.

`programs/s`: with --at-once programs an engine, a new one for each that ends. `mean` and `p99`:
programs that arrive one by one at --load of the rate at which the last policy ends them. `hits`:
the share of prompt tokens found cached; `big cache`: of one engine with a pool that holds
everything. `balance`: the busiest engine's time over the mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

import programs_of_load
from fleet.policies import POLICIES
from fleet.running import Outcome, run
from fleet.simulated import BLOCK, Engine
from programs_of_load import programs

EVERYTHING = 1 << 40


def fleet(kind: str, work: list[Any], n: int, pool: int, at_once: int) -> Outcome:
    """One run of a policy with fresh engines."""
    n_blocks = pool // BLOCK
    return run(work, [Engine(n_blocks) for _ in range(n)], POLICIES[kind](n, n_blocks), at_once)


def measure(args: argparse.Namespace, n: int) -> list[dict[str, Any]]:
    programs_of_load.N_GROUPS = args.groups * n
    work = programs(args.seed, args.programs * n, rate=1.0)
    best = fleet("round robin", work, 1, EVERYTHING, args.at_once * n)
    rows = []
    rate = 0.0
    for kind in reversed(args.policies):
        closed = fleet(kind, work, n, args.pool, args.at_once * n)
        per_s = len(work) / closed.seconds
        rate = rate or args.load * per_s
        opened = fleet(kind, programs(args.seed, len(work), rate), n, args.pool, 0)
        rows.append({
            "engines": n, "policy": kind, "programs_per_s": per_s, "hits": closed.hits,
            "big_cache": best.hits, "balance": max(closed.busy) / float(np.mean(closed.busy)),
            "rate": rate, "hits_open": opened.hits, "mean_s": float(np.mean(opened.times_s)),
            "p99_s": float(np.percentile(opened.times_s, 99)),
        })  # fmt: skip
        print(_line(rows[-1]), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['engines']:5} {row['policy']:13} {row['programs_per_s']:8.2f} programs/s  hits "
        f"{row['hits']:.3f} (big cache {row['big_cache']:.3f})  balance {row['balance']:.2f}  "
        f"mean {row['mean_s']:.1f} s  p99 {row['p99_s']:.0f} s  hits {row['hits_open']:.3f}"
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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = [row for n in args.engines.split(",") for row in measure(args, int(n))]
    if args.out:
        told = {"command": " ".join(sys.argv), "rows": rows}
        args.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
