"""The long form of tests/engine/core/fuzz/test_fuzz.py.

    .venv/bin/python -P tools/fuzz_cache.py --operations 1000000 --seeds 10

For each seed it makes `--operations` random operations on tree and pool, and compares each with a
naive cache; then it compares `--engines` random engines with the naive model. It stops at the first
difference and prints how to reproduce it.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benches/engine"))

from engine.core.cache import cache_fuzz
from engine.core.fuzz import engine_fuzz


def run(seed: int, n_operations: int, n_engines: int, kind: str) -> float:
    """Runs one seed; returns the CPU time in seconds."""
    start = time.process_time()
    cache_fuzz.run(seed, n_operations, kind)
    for i in range(n_engines):
        engine_fuzz.run(seed * 1_000_000 + i)
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--operations", type=int, default=1_000_000, help="for each seed")
    parser.add_argument("--engines", type=int, default=100, help="for each seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", choices=("radix", "list"), default="radix")
    options = parser.parse_args()
    start = time.perf_counter()
    todo = (options.operations, options.engines, options.cache)
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        runs = {pool.submit(run, seed, *todo): seed for seed in seeds}
        for done in as_completed(runs):
            if done.exception() is not None:
                pool.shutdown(cancel_futures=True)
                print(f"seed {runs[done]} fails; again: --first-seed {runs[done]} --seeds 1")
                done.result()
            print(f"seed {runs[done]}: {done.result():.0f} s of CPU", flush=True)
    n_operations, n_engines = options.operations * options.seeds, options.engines * options.seeds
    took = time.perf_counter() - start
    print(f"{n_operations} operations and {n_engines} engines agree, {took:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
