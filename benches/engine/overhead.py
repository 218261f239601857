"""What deciding costs: Python time of a step, and the tree's and scheduler's share of a real run.

    python -P benches/engine/overhead.py [--model M] [--folder FOLDER] [--out FILE.json]

*Steps*: decode steps with a model that does nothing, at some numbers of running requests and
context lengths. *Share*: requests that share nothing, on a real model; the time in calls of the
scheduler (the tree included) over the total time. The SGLang paper reports 0.2 s of 74.3 s, 0.27%,
for its tree.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).resolve().parent))

import models
from drive import be_tuned
from peers import machine

from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.scheduling.scheduler import Scheduler
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 64
STEPS = 200
CASES = ((1, 64), (16, 64), (64, 64), (1, 32_000), (16, 32_000))
DECIDING = ("add", "admit", "choose", "publish", "publish_choices", "leave", "commit")


class Nothing:
    """A forward pass that costs nothing."""

    def __init__(self) -> None:
        self._logits = np.zeros((1024, VOCAB), np.float32)

    def run(self, batch: FlatBatch) -> npt.NDArray[np.float32]:
        return self._logits[: len(batch.logit_index)]


class Stopwatch:
    """Seconds in calls of the scheduler; nested calls count once."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.seconds, self._depth = 0.0, 0
        for name in DECIDING:
            setattr(scheduler, name, self._timed(getattr(scheduler, name)))

    def _timed(self, call: Any) -> Any:
        def timed(*arguments: Any) -> Any:
            if self._depth:
                return call(*arguments)
            self._depth = 1
            start = time.perf_counter()
            try:
                return call(*arguments)
            finally:
                self.seconds += time.perf_counter() - start
                self._depth = 0

        return timed


def steps() -> list[dict[str, Any]]:
    return [_steps(n, context) for n, context in CASES]


def _steps(n: int, context: int) -> dict[str, Any]:
    core = _core(Nothing(), n * (context + STEPS + 100), context + STEPS + 100, VOCAB)
    rng = np.random.default_rng(0)
    for i in range(n):
        core.submit(EngineRequest(i, rng.integers(3, VOCAB, context), Generate(STEPS + 50)))
    while not all(w.is_decoding for w in core.scheduler.running) or len(core.scheduler.waiting):
        core.step()
    watch = Stopwatch(core.scheduler)
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        core.step()
        times.append(time.perf_counter() - start)
    return {
        "running": n,
        "context": context,
        "step_us": 1e6 * float(np.median(times)),
        "deciding_us": 1e6 * watch.seconds / STEPS,
    }


def share(name: str, folder: Path) -> dict[str, Any]:
    """The share for 100 requests with nothing in common, as the paper's 100 of ShareGPT."""
    from sgc.runtime.engine.model.loading import load_model

    runner = load_model(str(models.make(name, folder)), pool_tokens=65536)
    core = _core(runner, runner.pool_tokens, runner.max_context, runner.vocab_size)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for i in range(100):
        prompt = rng.integers(3, runner.vocab_size, int(rng.integers(64, 320)))
        core.submit(EngineRequest(i, prompt, Generate(int(rng.integers(32, 128)))))
    watch = Stopwatch(core.scheduler)
    while core.has_work:
        core.step()
    seconds = time.perf_counter() - start
    return {
        "model": name,
        "seconds": seconds,
        "deciding_s": watch.seconds,
        "share": watch.seconds / seconds,
        "steps": core.stats().counters.steps,
        "cached_tokens": core.stats().counters.cached_tokens,
    }


def _core(forward: Any, pool: int, context: int, vocab: int) -> EngineCore:
    return EngineCore(forward, pool_tokens=pool, max_context=context, vocab_size=vocab)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="M")
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    be_tuned()
    rows = steps()
    for row in rows:
        print(
            f"{row['running']:3} running, context {row['context']:6}: {row['step_us']:6.0f} us "
            f"a step, {row['deciding_us']:5.0f} of them deciding"
        )
    of_run = share(options.model, options.folder)
    print(f"{of_run['model']}: {of_run['seconds']:.1f} s, deciding {100 * of_run['share']:.2f}%")
    if options.out:
        found = {"machine": machine(), "steps": rows, "share": of_run}
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
