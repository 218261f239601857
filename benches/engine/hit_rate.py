"""How near the cache comes to the best hit rate: policies, pools and the papers' workloads.

    python -P benches/engine/hit_rate.py [--programs 60] [--seeds 3] [--out FILE.json]

It uses the fake model, which is quick, and the real tree, pool and scheduler. *known*: all programs
start at once. *online*: 32 programs are in flight, and the next one starts when one ends. The pool
is a share of all distinct positions (but holds eight of the longest sequences). Hit rates are
shares of the offline optimum (`offline.py`), which is counted from the requests alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

import bars
from drive import Asked, Drive
from offline import Optimum, optimum
from workloads import SHAPES, make

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 4096
POLICIES = ("lpm", "dfs", "fcfs", "random")
POOLS = (0.1, 0.25, 1.5)
WIDTHS = {"known": None, "online": 32}


@dataclass(frozen=True, slots=True)
class Rate:
    """cached_tokens: by the engine's count; best: the optimum for the same requests."""

    prompt_tokens: int
    cached_tokens: int
    positions_run: int
    best: Optimum

    @property
    def share(self) -> float:
        """The cached tokens, as a share of the optimum."""
        return self.cached_tokens / max(1, self.best.cached_tokens)


def measure(
    shape: str,
    seed: int,
    n: int,
    *,
    policy: str,
    pool: float,
    width: int | None,
    scale: float = 1,
    least: int = 8,
) -> Rate:
    """Measures a run on an empty cache. least: how many of the longest sequences the pool holds."""
    longest, n_distinct = _size(shape, seed, n, scale)
    tokens = max(least * longest, int(pool * n_distinct))
    core, asked = _run(shape, seed, n, scale, pool_tokens=tokens, policy=policy, width=width)
    counters = core.stats().counters
    n_prompt = sum(len(a.call.prompt) for a in asked)
    n_choices = counters.prompt_tokens - n_prompt  # a choice's positions are never cached
    assert n_choices >= 0
    return Rate(n_prompt, counters.cached_tokens, counters.positions_run, best_of(asked))


@cache
def _size(shape: str, seed: int, n: int, scale: float) -> tuple[int, int]:
    """The longest sequence of a workload, and its distinct positions."""
    everything = _run(shape, seed, n, scale, pool_tokens=4_000_000, policy="fcfs", width=None)[1]
    longest = max(len(a.call.prompt) + len(a.output) + _n_choices(a) for a in everything)
    best = best_of(everything)
    return longest, best.prompt_tokens - best.cached_tokens


def best_of(asked: list[Asked]) -> Optimum:
    return optimum([(a.call.prompt, a.output, bool(a.call.n_out or a.call.choices)) for a in asked])


def _n_choices(asked: Asked) -> int:
    return sum(map(len, asked.call.choices))


def _run(
    shape: str,
    seed: int,
    n: int,
    scale: float,
    *,
    pool_tokens: int,
    policy: str,
    width: int | None,
) -> tuple[EngineCore, list[Asked]]:
    core = EngineCore(
        FakeModel(pool_tokens, VOCAB),
        pool_tokens=pool_tokens,
        max_context=1 << 20,
        vocab_size=VOCAB,
        policy=policy,
    )
    programs = make(shape, n, seed=seed, vocab=VOCAB, scale=scale)
    return core, Drive(core, programs, width).run()


def table(n: int, seeds: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        for arrival, width in WIDTHS.items():
            for pool in POOLS:
                row: dict[str, Any] = {"shape": shape, "arrival": arrival, "pool": pool}
                for policy in POLICIES:
                    rates = [
                        measure(shape, seed, n, policy=policy, pool=pool, width=width)
                        for seed in range(seeds)
                    ]
                    row[policy] = float(np.mean([rate.share for rate in rates]))
                    row["optimum"] = float(np.mean([rate.best.hit_rate for rate in rates]))
                rows.append(row)
                print(_line(row), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    shares = "  ".join(f"{policy} {100 * row[policy]:5.1f}%" for policy in POLICIES)
    where = f"{row['shape']:16} {row['arrival']:6} pool {row['pool']:4}"
    return f"{where}  optimum {100 * row['optimum']:5.1f}%  of it: {shares}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = table(options.programs, options.seeds)
    for arrival in WIDTHS:
        of_arrival = [row for row in rows if row["arrival"] == arrival]
        means = {policy: float(np.mean([row[policy] for row in of_arrival])) for policy in POLICIES}
        print(arrival, {policy: round(100 * mean, 2) for policy, mean in means.items()})
    if options.out:
        options.out.write_text(json.dumps({"programs": options.programs, "rows": rows}, indent=1))
        shown = [row for row in rows if row["pool"] == POOLS[1] and row["arrival"] == "online"]
        bars.draw(
            options.out.with_suffix(".png"),
            "Cached prompt tokens, of the offline optimum; 32 programs in flight, pool a quarter "
            "of the distinct positions",
            [row["shape"] for row in shown],
            {policy: [100 * row[policy] for row in shown] for policy in POLICIES},
            "%",
        )


if __name__ == "__main__":
    main()
