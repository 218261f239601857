"""Times one step of a model: our own kernels beside torch, in turn, in one process.

    python -P benches/engine/step.py [--models S,M] [--reps 20] [--threads 2] [--folder FOLDER]
        [--ways native,int8,int8+kv] [--cpu-time] [--out FILE.json]

Decode steps of some rows and contexts, over scattered pages and with a shared prefix, and chunks of
prompts; with weights as they are, in eight bits, and K and V too. `share` is the least time that
the machine's limits allow with weights as they are, over the time: what must be read (weights, K
and V) at the rate of memory, or the products at the rate of arithmetic, whichever takes longer.
Both rates are measured here. Times are minima.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parent))

import models
from peers import machine

from sgc.kernels.cpu import library
from sgc.kernels.cpu.limits import Limits, measure
from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.model.forward import FlatBatch, Row, flatten
from sgc.runtime.engine.model.runner import ModelRunner, Needs
from sgc.runtime.engine.model.transformers_files import load_transformers_model
from sgc.runtime.engine.model.ways import (
    deterministic_runner,
    fused_runner,
    native_runner,
    native_runner_with,
)

N_PAGES = 70_000
PAUSE_S = 0.02  # torch's threads keep a core for some milliseconds after their last operation
WAYS = {
    "native": native_runner,
    "deterministic": deterministic_runner,
    "int8": native_runner_with(Needs(weights="int8")),
    "int8+kv": native_runner_with(Needs(weights="int8", kv="int8")),
    "torch": fused_runner,
}


@dataclass(frozen=True, slots=True)
class Case:
    """n_new tokens in each of n_rows; shared: leading pages that all rows have in common."""

    n_rows: int
    context: int
    n_new: int = 1
    shared: int = 0

    @property
    def name(self) -> str:
        if self.n_new > 1:
            return f"chunk of {self.n_new}, {self.context} of context"
        sharing = f", {self.shared} of them shared" if self.shared else ""
        return f"{self.n_rows} rows of {self.context}{sharing}"

    def batch(self, vocab: int) -> FlatBatch:
        rng = np.random.default_rng(0)
        pages = rng.permutation(N_PAGES)
        rows = []
        for i in range(self.n_rows):
            own = pages[i * self.context : (i + 1) * self.context].copy()
            own[: self.shared] = pages[: self.shared]
            tokens = rng.integers(0, vocab, self.n_new)
            wanted = np.array([self.n_new - 1])
            rows.append(Row(tokens, self.context - self.n_new, own, wanted))
        return flatten(rows)


CASES = (
    Case(1, 300), Case(16, 300), Case(64, 300), Case(64, 300, shared=240), Case(1, 4000),
    Case(16, 4000), Case(1, 512, n_new=512), Case(1, 2560, n_new=512),
)  # fmt: skip


def least_seconds(config: Any, case: Case, limits: Limits) -> float:
    """What a step takes at least: reading at the rate of memory, or products at that of dots."""
    hidden, inner = config.hidden_size, config.intermediate_size
    head_dim = getattr(config, "head_dim", None) or hidden // config.num_attention_heads
    q, kv = config.num_attention_heads * head_dim, config.num_key_value_heads * head_dim
    layer = hidden * (q + 2 * kv) + q * hidden + 3 * hidden * inner
    layers, head = config.num_hidden_layers * layer, hidden * config.vocab_size
    n_tokens = case.n_rows * case.n_new
    n_pages = case.shared + case.n_rows * (case.context - case.shared)
    n_read = 2 * (layers + head) + 2 * config.num_hidden_layers * 2 * kv * n_pages
    seen = case.context - (case.n_new - 1) / 2
    attention = config.num_hidden_layers * 4 * q * seen * n_tokens
    n_operations = 2 * layers * n_tokens + 2 * head * case.n_rows + attention
    return max(n_read / limits.memory, n_operations / limits.bf16)


def run_model(name: str, arguments: argparse.Namespace, limits: Limits) -> list[dict[str, Any]]:
    folder = str(models.make(name, arguments.folder))
    runners: dict[str, ModelRunner] = {}
    for way in arguments.ways.split(","):
        runners[way] = WAYS[way](load_transformers_model(folder, "bfloat16"), 1)
        while runners[way].gather_pages(64):  # as an engine does between its first steps
            pass
        runners[way].pool = KVPool(N_PAGES)
    found = []
    for case in CASES:
        batch = case.batch(runners["native"].vocab_size)
        clock = time.process_time if arguments.cpu_time else time.perf_counter
        times = timed(runners, batch, arguments.reps, clock)
        least = least_seconds(runners["native"].config, case, limits)
        row = {"case": case.name, "least_ms": 1000 * least}
        row |= {f"{way}_ms": 1000 * best for way, best in times.items()}
        row["share"] = least / times["native"]
        row |= {f"over_{way}": t / times["native"] for way, t in times.items() if way != "native"}
        found.append(row)
        shown = ", ".join(
            f"{way} {1000 * t:.2f} ({t / times['native']:.2f})" for way, t in times.items()
        )
        print(f"{name}, {case.name}: {shown} ms; {row['share']:.0%} of the limit", flush=True)
    return found


def timed(
    runners: dict[str, ModelRunner], batch: FlatBatch, reps: int, clock: Callable[[], float]
) -> dict[str, float]:
    """The least seconds of each way. Their turns alternate, so that all see the same machine."""
    best = dict.fromkeys(runners, float("inf"))
    for _ in range(reps):
        for way, runner in runners.items():
            time.sleep(PAUSE_S)
            runner.run(batch)  # brings back what the others took out of the caches
            started = clock()
            runner.run(batch)
            best[way] = min(best[way], clock() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="S,M")
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--ways", default=",".join(WAYS), help="native among them")
    parser.add_argument(
        "--cpu-time", action="store_true", help="with one thread, on a busy machine"
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    kernels = library.find()
    if kernels is None:
        sys.exit(f"no kernels of our own: {library.reason()}")
    limits = measure(kernels, library.Threads(kernels, arguments.threads), seconds=1.0)
    print(f"{kernels.isa.name}: {limits.bf16 / 1e9:.0f} GFLOP/s of bf16, "
          f"{limits.memory / 1e9:.1f} GB/s read", flush=True)  # fmt: skip
    report = {
        "command": " ".join(["python -P benches/engine/step.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "kernels": kernels.isa.name,
        "threads": arguments.threads,
        "limits": {"bf16_flops": limits.bf16, "fp32_flops": limits.fp32, "bytes": limits.memory},
        "steps": {name: run_model(name, arguments, limits) for name in arguments.models.split(",")},
    }
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
