"""What each part of the engine is worth: the same work without it, on a real model.

    python -P benches/engine/ablations.py [--model S] [--programs 24] [--rounds 3] [--out FILE.json]

Variants run in turn in every round, on an empty cache, with the same programs (`workloads.py`);
ratios to the whole engine are within a round. It reports total seconds, positions run, hit rate,
and the gap between two tokens of a request (median and 99th percentile), which chunked prefill
improves.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

import bars
import models
from drive import Drive, be_tuned
from other_caches import CACHES
from peers import machine
from workloads import Call, Program, make

from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.step.core import EngineCore

SHAPES = ("few_shot_select", "multi_level", "tree_of_thought", "judge", "react")
# The pool holds a part of what the programs use, so that eviction matters.
POOL_SHARE = 0.4
WITHOUT: dict[str, dict[str, Any]] = {
    "whole": {},
    "cache": CACHES["none"],
    "tree (a list)": CACHES["list"],
    "order (fcfs)": {"policy": "fcfs"},
    "order (random)": {"policy": "random"},
    "sharing in the batch": {"shares_in_batch": False},
    "chunks": {"chunk_tokens": 1_000_000},
    "fork commit": {"commits": False},
    "fork commit and sharing": {"commits": False, "shares_in_batch": False},
}


class Timed(Drive):
    """Measures the time between the tokens of each request."""

    def __init__(self, core: EngineCore, programs: list[Program], width: int) -> None:
        super().__init__(core, programs, width)
        self.gaps_s: list[float] = []
        self._last: dict[int, float] = {}
        step = core.step

        def timed() -> Any:
            updates = step()
            now = time.perf_counter()
            for update in updates:
                if update.new_ids:
                    before = self._last.get(update.id)
                    self._last[update.id] = now
                    if before is not None:
                        self.gaps_s.append(now - before)
            return updates

        core.step = timed  # type: ignore[method-assign]


def without_commits(program: Program) -> Program:
    """The program without its commits of a fork's trunk."""
    outputs: Any = None
    while True:
        try:
            calls = next(program) if outputs is None else program.send(outputs)
        except StopIteration:
            return
        if all(call.n_out == 0 and not call.choices for call in calls):
            outputs = [() for _ in calls]
        else:
            outputs = yield calls


def programs_of(shape: str, n: int, seed: int, vocab: int, scale: float) -> list[Program]:
    return make(shape, n, seed=seed, vocab=vocab, scale=scale)


def run_once(
    runner: ModelRunner, shape: str, seed: int, options: argparse.Namespace, variant: dict[str, Any]
) -> dict[str, float]:
    settings = dict(variant)
    commits = settings.pop("commits", True)
    programs = programs_of(shape, options.programs, seed, runner.vocab_size, options.scale)
    if not commits:
        programs = [without_commits(program) for program in programs]
    core = EngineCore(
        runner,
        pool_tokens=pool_of(shape, options, runner),
        max_context=runner.max_context,
        vocab_size=runner.vocab_size,
        **settings,
    )
    drive = Timed(core, programs, options.width)
    start = time.perf_counter()
    drive.run()
    seconds = time.perf_counter() - start
    counters = core.stats().counters
    return {
        "seconds": seconds,
        "positions_run": counters.positions_run,
        "hit_rate": counters.cached_tokens / counters.prompt_tokens,
        "gap_p50_ms": 1000 * float(np.percentile(drive.gaps_s or [0], 50)),
        "gap_p99_ms": 1000 * float(np.percentile(drive.gaps_s or [0], 99)),
        "preemptions": core.stats().preemptions,
    }


def pool_of(shape: str, options: argparse.Namespace, runner: ModelRunner) -> int:
    """A share of the longest prompts of all programs, but room for four of the longest."""
    lengths = [n for program in _peek(shape, options, runner) for n in program]
    return min(runner.pool_tokens, max(4 * max(lengths) + 512, int(POOL_SHARE * sum(lengths))))


def _peek(shape: str, options: argparse.Namespace, runner: ModelRunner) -> Iterator[list[int]]:
    """The length of each program's longest call, if all outputs were zeros."""
    for program in programs_of(shape, options.programs, 0, runner.vocab_size, options.scale):
        lengths, calls = list[int](), next(program, None)
        while calls:
            lengths = [max([*lengths, *map(_length, calls)])]
            try:
                calls = program.send([(0,) * call.n_out for call in calls])
            except StopIteration:
                calls = None
        yield lengths


def _length(call: Call) -> int:
    return len(call.prompt) + call.n_out + sum(map(len, call.choices))


def table(runner: ModelRunner, options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for shape in options.shapes.split(","):
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in WITHOUT}
        for seed in range(options.rounds + 1):  # the first is a warm-up
            for name, variant in WITHOUT.items():
                rounds[name].append(run_once(runner, shape, seed, options, variant))
        found[shape] = {
            name: _summary(runs[1:], rounds["whole"][1:]) for name, runs in rounds.items()
        }
        for name, row in found[shape].items():
            print(f"{shape:16} without {name:24} {_line(row)}", flush=True)
    return found


def _summary(runs: list[dict[str, float]], whole: list[dict[str, float]]) -> dict[str, float]:
    medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    ratios = [run["seconds"] / base["seconds"] for run, base in zip(runs, whole, strict=True)]
    return {**medians, "times_slower": statistics.median(ratios)}


def _line(row: dict[str, float]) -> str:
    return (
        f"{row['seconds']:6.2f} s ({row['times_slower']:.2f}x)  hit {100 * row['hit_rate']:5.1f}%  "
        f"{row['positions_run']:7.0f} positions  gap {row['gap_p50_ms']:.1f} ms, "
        f"p99 {row['gap_p99_ms']:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="S")
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--programs", type=int, default=24)
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    be_tuned()
    runner = load_model(str(models.make(options.model, options.folder)), pool_tokens=65536)
    found = table(runner, options)
    if options.out:
        about = {"machine": machine(), "model": options.model, "options": _plain(options)}
        options.out.write_text(json.dumps({**about, "shapes": found}, indent=1) + "\n")
        bars.draw(
            options.out.with_suffix(".png"),
            f"Time without a part of the engine, times that of the whole (model {options.model})",
            list(found),
            {n: [rows[n]["times_slower"] for rows in found.values()] for n in WITHOUT},
            "times slower",
        )


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    return {key: value for key, value in vars(options).items() if not isinstance(value, Path)}


if __name__ == "__main__":
    main()
