"""Two engines of one model, a core each, beside one: by their caches, and one after the other.

    python -P benches/two_engines.py --folder FOLDER [--model S] [--rows 240] [--documents 16]
        [--pool 12288] [--reps 3] [--out benches/results/two_engines.json]

Each row asks two questions about one of the documents; rows come shuffled and all at once. One
engine runs on the first core; two run on a core each, and requests go by what each is believed to
hold (`runtime/executor/routing`), or to the two in turn. Engines are started anew for each run, and
kinds take turns. The client runs on the same cores.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent / "engine"))

import models
from texts import Prose

import sgc
from sgc.errors import EngineUnavailable
from sgc.runtime.executor.routing.members import Member
from sgc.runtime.executor.routing.router import Router

START_S = 120.0


@sgc.function
def questions(s: Any, document: str, one: str, two: str) -> None:
    s += document + "\n" + one + sgc.gen("a", max_tokens=24, ignore_eos=True)
    s += "\n" + two + sgc.gen("b", max_tokens=24, ignore_eos=True)


def rows(n: int, n_documents: int) -> list[dict[str, str]]:
    prose = Prose(0)
    documents = [prose.text(160) for _ in range(n_documents)]
    found = [
        {"document": documents[i % n_documents], "one": prose.text(8), "two": prose.text(8)}
        for i in range(n)
    ]
    random.Random(0).shuffle(found)
    return found


@contextmanager
def engine(model: Path, core: int, pool: int, path: Path) -> Iterator[str]:
    command = ["taskset", "-c", str(core), sys.executable, "-P", "-m", "sgc", "serve"]
    command += ["--model", str(model), "--threads", "1", "--pool-tokens", str(pool)]
    with subprocess.Popen(
        [*command, "--listen", f"unix:{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait(f"unix:{path}")
            yield f"unix:{path}"
        finally:
            process.send_signal(signal.SIGTERM)


def _wait(uri: str) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            with sgc.connect(uri) as endpoint:
                endpoint.get_model_name()
            return
        except EngineUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def in_turn(router: Router, blocks: Sequence[int], own: float, usable: int) -> tuple[Member, int]:
    able = [member for member in router.members if member.bit & usable]
    member = min(able, key=lambda member: member.turn)
    return member, member.held.n_held(blocks)


def run(kind: str, model: Path, todo: list[dict[str, str]], pool: int) -> dict[str, float]:
    n = 1 if kind == "one" else 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        uris = [
            stack.enter_context(engine(model, core, pool, folder / f"{core}.sock"))
            for core in range(n)
        ]
        if kind == "in turn":
            stack.enter_context(mock.patch.object(Router, "_best", in_turn))
        with sgc.connect(",".join(uris)) as endpoint:
            questions.run_batch(todo[:4], backend=endpoint, order="given", temperature=0)
            endpoint.flush_cache()
            begun = time.perf_counter()
            states = questions.run_batch(todo, backend=endpoint, order="given", temperature=0)
            seconds = time.perf_counter() - begun
        stats = [state.result().stats for state in states]
    n_prompt = sum(each.prompt_tokens for each in stats)
    n_cached = sum(each.cached_tokens for each in stats)
    return {"rows_per_s": len(todo) / seconds, "hits": n_cached / n_prompt, "prompt": n_prompt}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", default="S")
    parser.add_argument("--rows", type=int, default=240)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--pool", type=int, default=12_288)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    model = models.make(args.model, args.folder)
    todo = rows(args.rows, args.documents)
    kinds = ("one", "by cache", "in turn")
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(args.reps):
        for kind in kinds:
            found[kind].append(run(kind, model, todo, args.pool))
            print(kind, found[kind][-1], flush=True)
    medians = {
        kind: {name: statistics.median(each[name] for each in runs) for name in runs[0]}
        for kind, runs in found.items()
    }
    print(json.dumps(medians, indent=1))
    if args.out:
        told = {
            "command": " ".join(sys.argv), "python": platform.python_version(),
            "torch": version("torch"), "medians": medians, "runs": found,
        }  # fmt: skip
        args.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
