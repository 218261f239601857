"""DSPy's retrieval pipeline on our server, with prefixes shared and without.

    python -P benches/dspy_rag.py --peer PYTHON [--models sgc-tiny,S] [--folder FOLDER]
        [--shapes plain,compiled] [--reps 3] [--threads 32] [--divisor 1] [--out FILE.json]

PYTHON is one with dspy 3.4.1 (`pip install dspy==3.4.1 litellm==1.110.2`); it runs
`dspy_pipeline.py`, the papers' module: 3 passages, a chain of thought over them, questions on
DSPy's own threads. plain: as it is written; compiled: with the 4 examples, passages included, that
BootstrapFewShot puts into each prompt. Both ways take turns on one `sgc serve --http 0`, whose
cache is flushed before each: shared, and apart, where each request has a salt of its own, so that
it finds no other's prefix. computed: prompt tokens that were not in the cache; client_cpu_s: what
DSPy itself takes of the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "engine"))

import bars
import models
from peers import machine
from texts import Prose

from sgc.runtime.engine.launch import EmbeddedEngine

HERE = Path(__file__).resolve().parent
FACTS = HERE.parent / "tools/tiny_model/data/facts.txt"
WAYS = ("shared", "apart")
N_PASSAGES, N_TRAIN, N_QUESTION = 400, 20, 10
DEMO = "sgc-tiny"  # the model that ships; its context has 4,096 tokens
N_WORDS = {DEMO: 60, "S": 60, "M": 80}  # of a passage
N_QUESTIONS = {DEMO: 64, "S": 64, "M": 24}
FIGURES = (
    "wall_s", "p50_s", "client_cpu_s", "prompt_tokens", "cached_tokens", "generated_tokens",
    "positions_run",
)  # fmt: skip


def texts(model: str, divisor: int) -> dict[str, Any]:
    """Passages, and questions that each have words of one passage: [question, answer]."""
    draw = random.Random(f"passages {model}")
    passages = [_passage(model, draw) for _ in range(N_PASSAGES)]
    chosen = draw.sample(passages, N_TRAIN + N_QUESTIONS[model] // divisor)
    asked = [[_question(passage, draw), passage.split()[0]] for passage in chosen]
    return {"passages": passages, "train": asked[:N_TRAIN], "dev": asked[N_TRAIN:]}


def _passage(model: str, draw: random.Random) -> str:
    if model != DEMO:
        return Prose(draw.randrange(10**9)).text(N_WORDS[model])
    lines = [line for line in FACTS.read_text().splitlines() if not line.startswith("#")]
    facts = [line.split("|")[2].strip() for line in lines if line]
    said = " ".join(draw.sample(facts, 20)).split()
    return " ".join(said[: N_WORDS[model]])


def _question(passage: str, draw: random.Random) -> str:
    said = passage.split()
    start = draw.randrange(len(said) - N_QUESTION)
    return "What is known of " + " ".join(said[start : start + N_QUESTION]).rstrip(".") + "?"


class Client:
    """Asks a server, each time from a process of its own."""

    def __init__(self, python: str, url: str, model: str, threads: int) -> None:
        self._python = python
        self._job = {"url": url, "model": model, "threads": threads}

    def does(self, **job: Any) -> dict[str, Any]:
        done = subprocess.run(
            [self._python, "-P", str(HERE / "dspy_pipeline.py")],
            input=json.dumps({**self._job, **job}), stdout=subprocess.PIPE, text=True, check=True,
            timeout=3600, env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        return dict(json.loads(done.stdout.splitlines()[-1]))


def measured(
    client: Client, model: str, shape: str, given: dict[str, Any], reps: int, folder: Path
) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    program = folder / f"{model}.json" if shape == "compiled" else None
    if program:
        client.does(**given, compile=str(program))
    job = {**given, "program": program and str(program)}
    client.does(**{**job, "dev": given["dev"][:4]}, is_apart=False)  # a warm-up
    for rep in range(reps):
        for way in WAYS[:: 1 if rep % 2 else -1]:
            runs[way].append(client.does(**job, is_apart=way == "apart"))
            print(f"  {model} {shape} {way}: {runs[way][-1]['wall_s']:.1f} s", flush=True)
    ratios = [a["wall_s"] / s["wall_s"] for a, s in zip(runs["apart"], runs["shared"], strict=True)]
    first = [runs[way][0]["replies"] for way in WAYS]
    return {
        "model": model, "shape": shape, "questions": len(given["dev"]),
        "times": round(statistics.median(ratios), 2),
        "times_each": [round(ratio, 2) for ratio in ratios],
        "equal_replies": sum(one == other for one, other in zip(*first, strict=True)),
        "dspy": runs["shared"][0]["dspy"],
        **{way: _figures(runs[way]) for way in WAYS},
    }  # fmt: skip


def _figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    found = {name: statistics.median(run[name] for run in runs) for name in FIGURES}
    hit_rate = found["cached_tokens"] / found["prompt_tokens"]
    computed = found["prompt_tokens"] - found["cached_tokens"]
    figures = {name: round(value, 3) for name, value in found.items()}
    return figures | {"computed": computed, "hit_rate": round(hit_rate, 3)}


def table(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for model in asked.models.split(","):
        named = None if model == DEMO else str(models.make(model, asked.folder))
        given = texts(model, asked.divisor)
        with (
            EmbeddedEngine(named, ["--http", "0"]) as engine,
            tempfile.TemporaryDirectory() as made,
        ):
            client = Client(asked.peer, engine.http_url, model, asked.threads)
            for shape in asked.shapes.split(","):
                yield measured(client, model, shape, given, asked.reps, Path(made))


def write(asked: argparse.Namespace, load: tuple[float, ...], rows: list[dict[str, Any]]) -> None:
    about = {
        "command": f"python -P benches/dspy_rag.py --peer PYTHON --models {asked.models} "
        f"--shapes {asked.shapes} --reps {asked.reps} --threads {asked.threads}",
        "machine": machine(), "load_before": load, "load_after": os.getloadavg(),
        "versions": {"torch": version("torch"), "dspy": rows[0]["dspy"]},
    }  # fmt: skip
    asked.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    bars.draw(
        asked.out.with_suffix(".png"), "DSPy's retrieval pipeline: seconds for all questions",
        [f"{row['model']}, {row['shape']}" for row in rows],
        {way: [row[way]["wall_s"] for row in rows] for way in WAYS}, "seconds",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, metavar="PYTHON", help="one that has dspy")
    parser.add_argument("--models", default="sgc-tiny,S")
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--shapes", default="plain,compiled")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--divisor", type=int, default=1, help="of the number of questions")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    load, rows = os.getloadavg(), list[dict[str, Any]]()
    for row in table(asked):
        print(row, flush=True)
        rows.append(row)
        if asked.out:
            write(asked, load, rows)


if __name__ == "__main__":
    main()
