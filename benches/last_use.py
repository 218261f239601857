"""What last-use marks do for the cache: rows that begin alike in a pool that cannot hold them all.

    python -P benches/last_use.py [--rows 50] [--rounds 1] [--out FILE.json]

Each row asks about one of several documents, with which its prompt begins (so may those of later
rows), and continues for some turns. The same compiled program runs with and without `mark_last`, on
the fake model, with rows one after the other in random order. The figure is the share of prompt
tokens that were cached; it is a count, which does not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
from pathlib import Path
from typing import Any

import sgc
from sgc.ir.graph import Graph
from sgc.passes.pipeline import optimize
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

N_DOCUMENTS = 12
WORDS = (
    "the", "of", "and", "to", "in", "is", "was", "for", "on", "that", "with", "as", "by", "at",
    "from", "it", "an", "be", "this", "which", "or", "are", "not",
)  # fmt: skip


@sgc.function
def one_answer(s: Any, document: str, question: str) -> None:
    s += document + question + sgc.gen("a", max_tokens=96, ignore_eos=True)


@sgc.function
def chat(s: Any, document: str, question: str) -> None:
    s += document + question + sgc.gen("a", max_tokens=64, ignore_eos=True)
    s += "\nAnd why?" + sgc.gen("b", max_tokens=64, ignore_eos=True)
    s += "\nIn short:" + sgc.gen("c", max_tokens=64, ignore_eos=True)


@sgc.function
def samples(s: Any, document: str, question: str) -> None:
    s += document + question
    for child in s.fork(3):
        child += " Think:" + sgc.gen("a", max_tokens=48, ignore_eos=True)


def rows(n: int, seed: int) -> list[dict[str, str]]:
    rng = random.Random(seed)
    documents = [" ".join(rng.choices(WORDS, k=90)) for _ in range(N_DOCUMENTS)]
    return [
        {"document": rng.choice(documents), "question": f" Question {number}?"}
        for number in range(n)
    ]


def hit_rate(graph: Graph, given: list[dict[str, str]], pool_tokens: int) -> float:
    cached = prompt = 0
    with Runtime("fake", pool_tokens=pool_tokens) as engine:
        for number, row in enumerate(given):
            result = sgc.Program(graph).run_once(row, RunOptions(seed=number), engine)
            cached += result.stats.cached_tokens
            prompt += result.stats.prompt_tokens
    return cached / prompt


def measure(n_rows: int, rounds: int) -> list[dict[str, Any]]:
    found = []
    for function in (one_answer, chat, samples):
        graph = trace(function)
        marked = optimize(graph, names=("mark_last",))
        assert marked is not graph
        for pool_tokens in (1536, 2048, 4096):
            pairs = []
            for seed in range(rounds):
                given = rows(n_rows, seed)
                pairs.append([hit_rate(each, given, pool_tokens) for each in (graph, marked)])
            plain, with_marks = (round(sum(each) / rounds, 4) for each in zip(*pairs, strict=True))
            found.append(
                {"program": graph.name, "pool_tokens": pool_tokens,
                 "hit_rate": plain, "hit_rate_marked": with_marks,
                 "by_round": pairs}
            )  # fmt: skip
            print(f"{graph.name}, pool {pool_tokens}: {plain:.1%}, {with_marks:.1%} marked")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    result = {
        "rows": given.rows,
        "documents": N_DOCUMENTS,
        "python": platform.python_version(),
        "found": measure(given.rows, given.rounds),
    }
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
