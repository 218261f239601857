"""What a select costs: one request for all choices, beside one request a choice.

    python -P benches/generation/choices.py [--model S] [--reps 15] [--out FILE.json]

A prompt of 512 tokens, new in each repetition, is followed by 4 choices, or by 50 with common
prefixes, as in a tree. The ways run in turn on new cores with empty caches, and the first one
rotates; ratios are within a repetition. It also counts the steps of a select. Python needs -P: else
the name of this file would hide another module.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "engine"))

import bars
import models
from drive import be_tuned
from other_caches import CACHES
from peers import machine
from shapes import FIRST_ID
from summary import paired_ratio
from texts import CHOICES

from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.requests.request import Commit, EngineRequest, Score
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer

N_PROMPT = 512
SELECT = "one select"
PACKAGES = ("numpy", "torch", "transformers")
CITIES = (
    "Paris", "Oslo", "Lima", "Cairo", "Delhi", "Quito", "Rome", "Seoul", "Accra", "Hanoi",
)  # fmt: skip
ENDINGS = ("in the north", "in the south", "by the sea", "on a river", "in the mountains")
TREE = [f" The answer is {city}, which lies {ending}." for city in CITIES for ending in ENDINGS]
Choices = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How choices are requested: in one request, or in one each, at once or in turn."""

    in_one_request: bool
    at_once: bool
    cache: str

    def waves(self, choices: Choices) -> list[list[Choices]]:
        """The choices of each request; a wave is submitted when the previous one has ended."""
        if self.in_one_request:
            return [[choices]]
        each: list[Choices] = [(choice,) for choice in choices]
        return [each] if self.at_once else [[one] for one in each]


# "each": one request per choice.
WAYS = {
    SELECT: Way(True, True, "radix"),
    "each, in turn": Way(False, False, "radix"),
    "each, at once": Way(False, True, "radix"),
    "each, in turn, no cache": Way(False, False, "none"),
    "each, at once, no cache": Way(False, True, "none"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement. best: the choice with the largest mean log-probability."""

    seconds: float
    positions_run: int
    steps: int
    logprobs: tuple[tuple[float, ...], ...]

    @property
    def best(self) -> int:
        return int(np.argmax([statistics.fmean(each) for each in self.logprobs]))


def choices_of(tokenizer: Tokenizer) -> dict[str, Choices]:
    """The choices of each scenario, as the ids that follow a prompt."""
    texts = {"4 choices": CHOICES, "50 choices that begin alike": TREE}
    return {
        name: tuple(tuple(tokenizer.encode_continuation(text)) for text in of)
        for name, of in texts.items()
    }


def make_core(runner: ModelRunner, cache: str = "radix") -> EngineCore:
    return EngineCore(
        runner,
        pool_tokens=runner.pool_tokens,
        max_context=runner.max_context,
        vocab_size=runner.vocab_size,
        **CACHES[cache],
    )


def answer(core: EngineCore, requests: Sequence[EngineRequest]) -> dict[int, Any]:
    """Submits requests, and returns the scores of each."""
    for request in requests:
        core.submit(request)
    found: dict[int, Any] = {}
    while core.has_work:
        for update in core.step():
            assert update.error is None, update.error
            found[update.id] = update.choices
    return found


def measure(runner: ModelRunner, way: Way, prompt: np.ndarray, choices: Choices) -> Measured:
    core = make_core(runner, way.cache)
    logprobs: list[tuple[float, ...]] = []
    started_s = time.perf_counter()
    for wave in way.waves(choices):
        found = answer(core, [EngineRequest(i, prompt, Score(of)) for i, of in enumerate(wave)])
        logprobs += [each for i in range(len(wave)) for each in found[i]]
    seconds = time.perf_counter() - started_s
    counters = core.stats().counters
    return Measured(seconds, counters.positions_run, counters.steps, tuple(logprobs))


def repeat(
    runner: ModelRunner, scenarios: dict[str, Choices], reps: int
) -> dict[str, dict[str, list[Measured]]]:
    """{scenario: {way: measurements by repetition}}, after a warm-up repetition."""
    found: dict[str, dict[str, list[Measured]]] = {s: {w: [] for w in WAYS} for s in scenarios}
    for rep in range(-1, reps):
        draw = np.random.default_rng([rep + 1, 77])
        prompts = draw.integers(FIRST_ID, runner.vocab_size, (len(scenarios), N_PROMPT))
        for (scenario, choices), prompt in zip(scenarios.items(), prompts, strict=True):
            turn = rep % len(WAYS)
            for name in [*WAYS][turn:] + [*WAYS][:turn]:
                measured = measure(runner, WAYS[name], prompt, choices)
                if rep >= 0:
                    found[scenario][name].append(measured)
    return found


def figures(of_ways: dict[str, list[Measured]]) -> dict[str, dict[str, Any]]:
    """The figures of a scenario. times: this way's seconds over those of one select."""
    selects = of_ways[SELECT]
    rows: dict[str, dict[str, Any]] = {}
    for name, runs in of_ways.items():
        times, interval = paired_ratio(
            np.array([a.seconds / b.seconds for a, b in zip(runs, selects, strict=True)])
        )
        rows[name] = {
            "median_ms": round(1000 * statistics.median(run.seconds for run in runs), 3),
            "best_ms": round(1000 * min(run.seconds for run in runs), 3),
            "times": times,
            "times_95": interval,
            "positions_run": runs[0].positions_run,
            "steps": statistics.median(run.steps for run in runs),
            "all_ms": [round(1000 * run.seconds, 3) for run in runs],
            **agreement(runs, selects),
        }
    return rows


def agreement(runs: Sequence[Measured], selects: Sequence[Measured]) -> dict[str, float]:
    """The agreement with the select's results; bfloat16 rounds differently in another batch."""
    same = [a.best == b.best for a, b in zip(runs, selects, strict=True)]
    apart = [
        abs(x - y)
        for a, b in zip(runs, selects, strict=True)
        for of_a, of_b in zip(a.logprobs, b.logprobs, strict=True)
        for x, y in zip(of_a, of_b, strict=True)
    ]
    return {"same_best": statistics.fmean(same), "logprobs_apart": round(max(apart), 4)}


def steps_taken(runner: ModelRunner, scenarios: dict[str, Choices]) -> list[dict[str, Any]]:
    """The number of steps of one select; a step runs at most the positions of a chunk."""
    firsts = tuple((FIRST_ID + i,) for i in range(4))
    rows: list[dict[str, Any]] = []
    for name, choices in {"4 choices of one token": firsts, **scenarios}.items():
        for n_prompt in (N_PROMPT // 2, N_PROMPT):
            for is_cached in (False, True):
                core = make_core(runner)
                draw = np.random.default_rng([n_prompt, 78])
                prompt = draw.integers(FIRST_ID, runner.vocab_size, n_prompt)
                if is_cached:
                    answer(core, [EngineRequest(0, prompt, Commit())])
                before = core.stats().counters.steps
                answer(core, [EngineRequest(1, prompt, Score(choices))])
                taken = core.stats().counters.steps - before
                rows.append(
                    {"choices": name, "prompt": n_prompt, "is_cached": is_cached, "steps": taken}
                )
    return rows


def tell(found: dict[str, dict[str, dict[str, Any]]], steps: list[dict[str, Any]]) -> None:
    for scenario, rows in found.items():
        print(scenario)
        for name, row in rows.items():
            low, high = row["times_95"]
            print(
                f"  {name:28} {row['median_ms']:8.2f} ms (best {row['best_ms']:.2f})  "
                f"{row['times']:6.2f} times ({low:.2f} to {high:.2f})  "
                f"{row['positions_run']:6} positions  {row['steps']:4.0f} steps  same best "
                f"{100 * row['same_best']:.0f}%"
            )
    for row in steps:
        cached = "cached" if row["is_cached"] else "new"
        print(f"{row['choices']:28} prompt of {row['prompt']}, {cached:6}: {row['steps']} steps")


def save(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    draw(path.with_suffix(".png"), report["model"], report["scenarios"])


def draw(path: Path, model: str, found: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Plots seconds, positions and steps of each way, relative to one select."""
    kinds = {"time": "times", "positions run": "positions_run", "steps": "steps"}
    bars.draw(
        path,
        f"Choosing after a new prompt of {N_PROMPT} tokens: one select, or a request for each "
        f"choice (model {model})",
        [f"{scenario}:\n{kind}" for scenario in found for kind in kinds],
        {
            name: [rows[name][key] / rows[SELECT][key] for rows in found.values()
                   for key in kinds.values()]
            for name in WAYS
        },
        "times one select",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="S", choices=sorted(models.SPECS))
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--reps", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    be_tuned()
    folder = models.make(options.model, options.folder)
    runner = load_model(str(folder), pool_tokens=65536)
    scenarios = choices_of(load_tokenizer(folder))
    of_ways = repeat(runner, scenarios, options.reps)
    found = {scenario: figures(of) for scenario, of in of_ways.items()}
    steps = steps_taken(runner, scenarios)
    tell(found, steps)
    if options.out:
        report: dict[str, Any] = {
            "command": f"python -P benches/generation/choices.py --model {options.model} "
            f"--reps {options.reps}",
            "machine": machine(),
            "versions": {
                "python": sys.version.split()[0],
                **{name: version(name) for name in PACKAGES},
            },
            "model": options.model,
            "dtype": runner.dtype_name,
            "choice_tokens": {name: [*map(len, of)] for name, of in scenarios.items()},
            "scenarios": found,
            "steps_of_one_select": steps,
        }
        save(options.out, report)


if __name__ == "__main__":
    main()
