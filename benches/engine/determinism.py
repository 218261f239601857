"""Whether a deterministic engine's replies depend on what runs beside them: they must not.

    python -P benches/engine/determinism.py [--requests 10000] [--seeds 0,1] [--model S]
        [--folder FOLDER] [--out FILE.json]

Each request, in bfloat16, greedy or drawn, is run alone in an engine of its own, and again among
others, once for each seed: in batches of random size and order, pools of random size (so that
requests give way to others) and chunks of random length. Every token must be equal. For comparison,
how many of the first 1,000 replies the default engine changes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

import models
from peers import machine

from sgc.kernels.cpu import library
from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.model.transformers_files import load_transformers_model
from sgc.runtime.engine.model.ways import RunnerFactory, deterministic_runner, native_runner
from sgc.runtime.engine.requests.request import EngineRequest, Generate, SamplingParams
from sgc.runtime.engine.step.core import EngineCore

N_PAGES, MAX_CONTEXT, N_TRUNKS = 16_000, 600, 40
TIGHT = 4000  # with larger pools hardly any request gives way
N_COMPARED = 1000
WAYS: dict[str, RunnerFactory] = {"deterministic": deterministic_runner, "default": native_runner}
PACKAGES = ("torch", "transformers", "numpy")


@dataclass
class Run:
    """Replies by request, and what happened while they were made."""

    texts: dict[int, list[int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def make_requests(n: int, vocab: int, seed: int) -> list[EngineRequest]:
    """Prompts of 1 to 400 tokens, most of which begin like others'."""
    rng = np.random.default_rng(seed)
    trunks = [rng.integers(0, vocab, int(rng.integers(20, 350))) for _ in range(N_TRUNKS)]
    requests = []
    for i in range(n):
        tail = rng.integers(0, vocab, int(rng.integers(1, 50)))
        trunk = trunks[int(rng.integers(N_TRUNKS))]
        prompt = tail if i % 5 == 0 else np.concatenate([trunk[: rng.integers(len(trunk))], tail])
        params = SamplingParams(temperature=float(rng.choice([0.0, 0.8])), seed=i)
        longest = 120 if i % 8 == 0 else 24
        kind = Generate(max_tokens=int(rng.integers(1, longest)), params=params)
        requests.append(EngineRequest(i, prompt, kind))
    return requests


def add(run: Run, runner: ModelRunner, requests: Sequence[EngineRequest], **options: Any) -> None:
    """Runs requests in a new engine, all at once."""
    settings = {"pool_tokens": N_PAGES, "max_context": MAX_CONTEXT, **options}
    core = EngineCore(runner, vocab_size=runner.vocab_size, **settings)
    for request in requests:
        core.submit(request)
        run.texts[request.id] = []
    while core.has_work:
        for update in core.step():
            if update.error is not None:
                raise RuntimeError(update.error.message)
            run.texts[update.id] += update.new_ids
    stats = core.stats()
    run.counts += Counter(
        engines=1,
        preemptions=stats.preemptions,
        evicted_tokens=stats.evicted_tokens,
        cached_tokens=stats.counters.cached_tokens,
        accepted_guesses=stats.counters.accepted_tokens,
        generated_tokens=stats.counters.completion_tokens,
    )


def alone(runner: ModelRunner, requests: Sequence[EngineRequest]) -> Run:
    run = Run()
    for request in requests:
        add(run, runner, [request])
    return run


def among_others(runner: ModelRunner, requests: Sequence[EngineRequest], seed: int) -> Run:
    rng = np.random.default_rng(seed)
    order, run, at = rng.permutation(len(requests)), Run(), 0
    while at < len(order):
        batch = [requests[i] for i in order[at : at + int(rng.integers(2, 65))]]
        at += len(batch)
        options = {
            "pool_tokens": int(np.exp(rng.uniform(np.log(MAX_CONTEXT), np.log(TIGHT)))),
            "chunk_tokens": int(rng.integers(16, 513)),
            "headroom_tokens": int(rng.choice([0, 32])),  # without room, some are preempted
        }
        add(run, runner, batch, **options)
    return run


def measured(folder: str, factory: RunnerFactory, n: int, seeds: Sequence[int]) -> dict[str, Any]:
    runner = factory(load_transformers_model(folder, "bfloat16"), 1)
    runner.pool = KVPool(N_PAGES)
    requests = make_requests(n, runner.vocab_size, seeds[0])
    started = time.perf_counter()
    expected = alone(runner, requests).texts
    runs = [among_others(runner, requests, seed) for seed in seeds]
    changed = {i for run in runs for i in expected if run.texts[i] != expected[i]}
    return {
        "requests": n,
        "seeds": list(seeds),
        "changed": len(changed),
        "first": sorted(changed)[:5],
        "seconds": round(time.perf_counter() - started),
        "among others": dict(sum((run.counts for run in runs), Counter())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--model", default="S")
    parser.add_argument(
        "--seeds", type=lambda text: list(map(int, text.split(","))), default=[0, 1]
    )
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    kernels = library.find()
    if kernels is None:
        sys.exit(f"no kernels of our own: {library.reason()}")
    folder = str(models.make(arguments.model, arguments.folder))
    n = {"deterministic": arguments.requests, "default": min(arguments.requests, N_COMPARED)}
    report: dict[str, Any] = {
        "command": " ".join(["python -P benches/engine/determinism.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "kernels": kernels.isa.name,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
    }
    for name, factory in WAYS.items():
        report[name] = measured(folder, factory, n[name], arguments.seeds)
        print(name, report[name], flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if report["deterministic"]["changed"]:
        sys.exit("replies of the deterministic engine depend on what runs beside them")


if __name__ == "__main__":
    main()
