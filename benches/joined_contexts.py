"""Joined contexts: parts encoded side by side against plain joins; time, tokens, and what it costs.

    python -P benches/joined_contexts.py [--models S,M] [--folder FOLDER] [--reps 5]
        [--prompts 300] [--parts time,answers] [--out FILE.json]

time: the papers' two shapes, in turn on one server. Line retrieval: each of 8 questions goes to a
record of its own, of 4 windows. Many-document questions: each of 24 takes 4 of 16 documents, in the
order in which they were found, and other questions take the same ones in other orders. Both as
programs: a fork encodes the parts, `join` appends them, and an answer of 8 tokens follows. answers:
sgc-tiny's, on few-shot prompts of its own shapes whose solved examples are in windows: how often
the answer is right, how often both are equal, and how far the first token's probabilities are
apart (Kullback-Leibler divergence over the likeliest 100).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent / "engine"))
sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

import models
from peers import machine
from summary import paired_ratio
from texts import Prose
from tiny_model import shapes, tasks
from tiny_model.corpus import LAST_STAGE
from tiny_model.world import World

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend

WAYS = ("exact", "approximate")
N_RECORDS, N_WINDOWS, N_LINES = 8, 4, 30
N_DOCUMENTS, N_FOUND, N_QUESTIONS, DOCUMENT_WORDS = 16, 4, 24, 150
N_SOLVED = 2 * N_WINDOWS
TASKS = (
    tasks.sentiment, tasks.area, tasks.related, tasks.kind_of, tasks.tool_choice, tasks.reading,
    tasks.fact, tasks.sums,
)  # fmt: skip
POOL = "24576"


def program_of(n_parts: int, n_tokens: int) -> sgc.Function:
    @sgc.function
    def answer(s, kv: str, head: str, parts: list[str], question: str):
        s += head
        forks = s.fork(n_parts)
        for i, fork in enumerate(forks):
            fork += parts[i]
        forks.join("concate_and_append", kv=kv)
        s += question + sgc.gen("said", max_tokens=n_tokens, temperature=0)

    return answer


def lines(rep: int) -> list[dict[str, Any]]:
    draw, rows = random.Random(f"lines {rep}"), []
    for _ in range(N_RECORDS):
        prose = Prose(draw.randrange(10**6))
        windows = [
            "".join(
                f"line {prose.text(2)}: the content is {draw.randrange(10**5)}\n"
                for _ in range(N_LINES)
            )
            for _ in range(N_WINDOWS)
        ]
        ask = f"Tell me what is in line {prose.text(2)}:"
        rows.append({"head": "Below is a record of lines.\n", "parts": windows, "question": ask})
    return rows


def documents(rep: int) -> list[dict[str, Any]]:
    draw, prose = random.Random(f"documents {rep}"), Prose(rep)
    known = [f"Document: {prose.text(DOCUMENT_WORDS)}\n" for _ in range(N_DOCUMENTS)]
    return [
        {
            "head": "Answer from the documents.\n", "parts": draw.sample(known, N_FOUND),
            "question": f"Question: {prose.text(8)}\nAnswer:",
        }
        for _ in range(N_QUESTIONS)
    ]  # fmt: skip


SHAPES = {"line retrieval": lines, "many-document questions": documents}


def timed(folder: Path, name: str, reps: int) -> list[dict[str, Any]]:
    rows = []
    options = ["--pool-tokens", POOL]
    with (
        EmbeddedEngine(str(folder), options) as engine,
        Endpoint(EngineBackend(engine.uri)) as endpoint,
    ):
        for shape, make in SHAPES.items():
            took: dict[str, list[float]] = {way: [] for way in WAYS}
            computed: dict[str, list[int]] = {way: [] for way in WAYS}
            for rep in range(reps + 1):  # the first is a warm-up
                for way in WAYS[:: 1 if rep % 2 else -1]:
                    endpoint.flush_cache()
                    seconds, n = _all(endpoint, make(rep), way)
                    if rep:
                        took[way].append(seconds)
                        computed[way].append(n)
            rows.append(_row(name, shape, took, computed))
    return rows


def _all(endpoint: Endpoint, rows: list[dict[str, Any]], way: str) -> tuple[float, int]:
    program = program_of(N_WINDOWS, 8)
    given = [{**row, "kv": way} for row in rows]
    begun = time.perf_counter()
    states = program.run_batch(given, backend=endpoint, ignore_eos=True)
    took_s = time.perf_counter() - begun
    return took_s, sum(state.result().stats.computed_tokens for state in states)


def _row(name: str, shape: str, took: dict[str, Any], computed: dict[str, Any]) -> dict[str, Any]:
    ratio, interval = paired_ratio(np.array(took["exact"]) / np.array(took["approximate"]))
    row = {"model": name, "shape": shape, "times_faster": ratio, "times_faster_95": interval}
    for way in WAYS:
        row[way] = {
            "median_s": round(float(np.median(took[way])), 3),
            "computed_tokens": round(float(np.mean(computed[way]))),
        }
    print(f"  {row}", flush=True)
    return row


def exams(n: int) -> list[dict[str, Any]]:
    """Few-shot prompts of a task each, in one phrasing, and the right answer."""
    found: list[dict[str, Any]] = []
    for seed in range(n):
        draw, world = random.Random(f"joined {seed}"), World("test", stage=LAST_STAGE)
        task, phrasing = draw.choice(TASKS), draw.random()
        solved = [task(draw, random.Random(phrasing), world) for _ in range(N_SOLVED + 1)]
        texts = [f"{shapes.body(each)}\n{shapes.cue(each)}" for each in solved]
        done = [f"{text} {each.reply}\n\n" for text, each in zip(texts, solved, strict=True)]
        found.append({
            "head": f"{solved[0].instruction}\n\n" if solved[0].instruction else "",
            "parts": ["".join(done[2 * i : 2 * i + 2]) for i in range(N_WINDOWS)],
            "question": texts[-1], "right": solved[-1].reply,
        })  # fmt: skip
    return found


def answers(n: int) -> dict[str, Any]:
    asked, program = exams(n), program_of(N_WINDOWS, 24)
    said: dict[str, list[str]] = {}
    first: dict[str, list[dict[int, float]]] = {}
    with EmbeddedEngine("default", []) as engine, Endpoint(EngineBackend(engine.uri)) as endpoint:
        for way in WAYS:
            rows = [{k: v for k, v in each.items() if k != "right"} | {"kv": way} for each in asked]
            states = program.run_batch(
                rows, backend=endpoint, stop="\n", return_logprob=True, top_logprobs_num=100
            )
            said[way] = [state["said"].strip() for state in states]
            metas = [state.get_meta_info("said") for state in states]
            first[way] = [{i: p for p, i, _ in each["output_top_logprobs"][0]} for each in metas]
    right = [each["right"].strip() for each in asked]
    apart = [_divergence(*pair) for pair in zip(first["exact"], first["approximate"], strict=True)]
    found = {
        "prompts": n, "windows": N_WINDOWS, "solved_in_each": 2,
        **{f"right_{way}": _share(said[way], right) for way in WAYS},
        "equal": _share(said["exact"], said["approximate"]),
        "divergence_mean": round(float(np.mean(apart)), 4),
        "divergence_median": round(float(np.median(apart)), 5),
    }  # fmt: skip
    print(f"  {found}", flush=True)
    return found


def _share(some: list[str], others: list[str]) -> float:
    return round(sum(a == b for a, b in zip(some, others, strict=True)) / len(some), 4)


def _divergence(exact: dict[int, float], other: dict[int, float]) -> float:
    """Of the tokens that both know, and of the rest as one."""
    shared = exact.keys() & other.keys()
    pairs = [(math.exp(exact[i]), math.exp(other[i])) for i in shared]
    pairs.append((1 - sum(p for p, _ in pairs), 1 - sum(q for _, q in pairs)))
    return sum(p * math.log(p / max(q, 1e-9)) for p, q in pairs if p > 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--models", default="S,M")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--parts", default="time,answers")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    parts, found = options.parts.split(","), dict[str, Any]()
    if options.out and options.out.exists():  # other parts stay
        found = json.loads(options.out.read_text())
    about = {
        "command": f"python -P benches/joined_contexts.py --models {options.models} --reps "
        f"{options.reps} --prompts {options.prompts}",
        "machine": machine(), "versions": {"torch": version("torch")},
        "load_before": os.getloadavg(),
    }  # fmt: skip
    if "time" in parts:
        rows = []
        for name in options.models.split(","):
            rows += timed(models.make(name, options.folder), name, options.reps)
        found["time"] = about | {"rows": rows}
    if "answers" in parts:
        found["answers"] = about | answers(options.prompts)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
