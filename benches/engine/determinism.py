"""Whether a deterministic engine's replies depend on what runs beside them: they must not.

    python -P benches/engine/determinism.py [--requests 10000] [--model S] [--seed 0]
        [--folder FOLDER] [--out FILE.json]

Each request, in bfloat16, greedy or drawn, is run alone in an engine of its own, and again among
others: in batches of random size and order, pools of random size (so that requests give way to
others) and chunks of random length. Every token must be equal. For comparison, how many replies the
default engine changes.
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

import models
from peers import machine

from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.model.transformers_files import load_transformers_model
from sgc.runtime.engine.model.ways import RunnerFactory, deterministic_runner, native_runner
from sgc.runtime.engine.requests.request import EngineRequest, Generate, SamplingParams
from sgc.runtime.engine.step.core import EngineCore

N_PAGES, MAX_CONTEXT, N_TRUNKS = 16_000, 500, 40
WAYS: dict[str, RunnerFactory] = {"deterministic": deterministic_runner, "default": native_runner}


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
        kind = Generate(max_tokens=int(rng.integers(1, 24)), params=params)
        requests.append(EngineRequest(i, prompt, kind))
    return requests


def replies(
    runner: ModelRunner, requests: Sequence[EngineRequest], **options: Any
) -> dict[int, list[int]]:
    settings = {"pool_tokens": N_PAGES, "max_context": MAX_CONTEXT, **options}
    core = EngineCore(runner, vocab_size=runner.vocab_size, **settings)
    for request in requests:
        core.submit(request)
    found: dict[int, list[int]] = {request.id: [] for request in requests}
    while core.has_work:
        for update in core.step():
            if update.error is not None:
                raise RuntimeError(update.error.message)
            found[update.id] += update.new_ids
    return found


def among_others(
    runner: ModelRunner, requests: Sequence[EngineRequest], seed: int
) -> dict[int, list[int]]:
    rng = np.random.default_rng(seed)
    order, found, at = rng.permutation(len(requests)), {}, 0
    while at < len(order):
        batch = [requests[i] for i in order[at : at + int(rng.integers(2, 65))]]
        at += len(batch)
        pool, chunk = int(rng.integers(600, N_PAGES)), int(rng.integers(16, 513))
        found |= replies(runner, batch, pool_tokens=pool, chunk_tokens=chunk)
    return found


def measured(folder: str, factory: RunnerFactory, n: int, seed: int) -> dict[str, Any]:
    runner = factory(load_transformers_model(folder, "bfloat16"), 1)
    runner.pool = KVPool(N_PAGES)
    requests = make_requests(n, runner.vocab_size, seed)
    started = time.perf_counter()
    alone = {}
    for request in requests:
        alone |= replies(runner, [request])
    beside = among_others(runner, requests, seed)
    changed = [i for i in alone if alone[i] != beside[i]]
    took = round(time.perf_counter() - started)
    return {"requests": n, "changed": len(changed), "first": changed[:5], "seconds": took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--model", default="S")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = str(models.make(arguments.model, arguments.folder))
    report: dict[str, Any] = {
        "command": " ".join(["python -P benches/engine/determinism.py", *sys.argv[1:]]),
        "machine": machine(),
    }
    for name, factory in WAYS.items():
        report[name] = measured(folder, factory, arguments.requests, arguments.seed)
        print(name, report[name], flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if report["deterministic"]["changed"]:
        sys.exit("replies of the deterministic engine depend on what runs beside them")


if __name__ == "__main__":
    main()
