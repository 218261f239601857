"""What sharing equal requests and keeping replies cost and save, where much is equal and nothing.

    python benches/sharing.py [-n 3000] [--out benches/results/sharing.json]

Rows have one greedy generation each, on a backend that replies at once, so that it measures our own
cost: CPU seconds at -O0, which makes every request, and at -O1, with equal and with distinct rows,
and with a result cache that is empty and then full. Then it runs the shipped model on rows that are
equal in groups of ten, and compares the texts.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend

ROOT = Path(__file__).resolve().parent.parent
N_TRIES = 2


@sgc.function
def one(s: Any, q: str) -> None:
    s += "Q: " + q + "\nA:" + sgc.gen("t", temperature=0, max_tokens=8)


def run(level: int, rows: list[dict[str, str]], endpoint: Endpoint) -> dict[str, Any]:
    """Runs a batch; returns its seconds, its texts, and its requests by the source of the reply."""
    program = one.compile(opt_level=level)
    start_s, cpu_s = time.perf_counter(), time.process_time()
    states = program.run_batch(rows, backend=endpoint)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - start_s
    stats = [state.result().stats for state in states]
    names = ("requests", "shared_requests", "cached_requests", "prompt_tokens")
    sums = {name: sum(getattr(each, name) for each in stats) for name in names}
    texts = [state.text() for state in states]
    return {"cpu_s": round(cpu_s, 3), "wall_s": round(wall_s, 3), **sums, "texts": texts}


def best(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The run that took the least CPU, without its texts."""
    found = min((work() for _ in range(N_TRIES)), key=lambda row: row["cpu_s"])
    return {name: value for name, value in found.items() if name != "texts"}


def of_the_executor(n: int) -> dict[str, Any]:
    plain = Endpoint(ScriptedBackend(lambda prompt, sampling: " a"))
    equal, distinct = [{"q": "same"}] * n, [{"q": f"question {i}"} for i in range(n)]
    found = {
        "equal, -O0": best(lambda: run(0, equal, plain)),
        "equal, -O1": best(lambda: run(1, equal, plain)),
        "distinct, -O0": best(lambda: run(0, distinct, plain)),
        "distinct, -O1": best(lambda: run(1, distinct, plain)),
    }
    with tempfile.TemporaryDirectory() as folder:
        cached = sgc.cached(plain, folder)
        for name in ("distinct, -O1, an empty cache", "distinct, -O1, a full cache"):
            found[name] = run(1, distinct, cached)
            del found[name]["texts"]
        cached.shutdown()
    return found


def of_the_model(n: int) -> dict[str, Any]:
    rows = [{"q": f"What is {i % (n // 10)} plus 2?"} for i in range(n)]
    with sgc.Runtime() as runtime:
        found = {}
        for level in (0, 1):
            runtime.flush_cache()
            found[f"-O{level}"] = run(level, rows, runtime)
    pairs = zip(found["-O0"].pop("texts"), found["-O1"].pop("texts"), strict=True)
    return {**found, "rows": n, "equal_texts": sum(one == other for one, other in pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=3000, help="rows without a model")
    parser.add_argument("--rows", type=int, default=200, help="rows on the shipped model")
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/sharing.json")
    asked = parser.parse_args()
    found = {
        "machine": {"cpus": 2, "python": platform.python_version(), "torch": version("torch"),
                    "sqlite": sqlite3.sqlite_version},
        "rows": asked.n,
        "executor": of_the_executor(asked.n),
        "model": of_the_model(asked.rows),
    }  # fmt: skip
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
