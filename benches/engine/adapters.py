"""What adapters cost in a step: a model with two loaded beside the model alone, in turn, in one
process, on our own kernels.

    python -P benches/engine/adapters.py [--models S,M] [--rank 16] [--reps 20] [--threads 2]
        [--folder FOLDER] [--out FILE.json]

Both adapters change every linear module but the head. Of the rows of a decode step none, half or
all have one, in turn the first and the second; a chunk of a prompt has the first. Times are minima.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))

import models
from lora_folders import save_adapter
from peers import machine
from step import N_PAGES, PAUSE_S, Case

from sgc.runtime.engine.model.adapters.weights import Adapters
from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.runner import ModelRunner, Needs
from sgc.runtime.engine.model.transformers_files import load_transformers_model
from sgc.runtime.engine.model.ways import native_runner, native_runner_with

CASES = (Case(1, 300), Case(16, 300), Case(64, 300), Case(1, 512, n_new=512))
SHARES = {"no row": (0,), "every second row": (0, 1, 0, 2), "all rows": (1, 2)}


def with_adapters(batch: FlatBatch, adapters: Sequence[int]) -> FlatBatch:
    """The rows in the order of their adapters, as a step has them."""
    each = sorted(adapters[i % len(adapters)] for i in range(batch.n_rows))
    return replace(batch, adapters=np.array(each)) if any(each) else batch


def milliseconds(runner: ModelRunner, batch: FlatBatch) -> float:
    time.sleep(PAUSE_S)
    started_s = time.perf_counter()
    runner.run(batch)
    return (time.perf_counter() - started_s) * 1000


def rows_of(name: str, folder: Path, rank: int, reps: int) -> list[dict[str, Any]]:
    path = str(models.make(name, folder))
    with tempfile.TemporaryDirectory() as temporary:
        model = load_transformers_model(path, "auto")
        files = [
            save_adapter(model, Path(temporary) / str(n), seed=n, rank=rank, strength=0.02,
                         dtype=torch.bfloat16, adapts=lambda name: name != "lm_head")
            for n in (1, 2)
        ]  # fmt: skip
        adapted = native_runner_with(Needs(), Adapters(files))(model, N_PAGES)
    alone = native_runner(load_transformers_model(path, "auto"), N_PAGES)
    while alone.gather_pages() or adapted.gather_pages():
        pass
    found = []
    for case in CASES:
        plain = case.batch(alone.vocab_size)
        shares = {"all rows": (1,)} if case.n_new > 1 else SHARES
        for share, adapters in shares.items():
            batch = with_adapters(plain, adapters)
            pairs = [
                (milliseconds(alone, plain), milliseconds(adapted, batch)) for _ in range(reps)
            ]
            base_ms, ms = (min(times) for times in zip(*pairs, strict=True))
            row = {"model": name, "case": case.name, "adapted": share,
                   "alone_ms": round(base_ms, 2),
                   "ms": round(ms, 2), "times": round(ms / base_ms, 3)}  # fmt: skip
            print("{model} {case:32} {adapted:18} {alone_ms:8} {ms:8} {times:6}".format(**row))
            found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="S,M")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    rows = []
    for name in asked.models.split(","):
        rows += rows_of(name, asked.folder, asked.rank, asked.reps)
    if asked.out is not None:
        told = {"date": str(datetime.date.today()), "machine": machine(),
                "torch": torch.__version__,
                "rank": asked.rank, "rows": rows}  # fmt: skip
        asked.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
