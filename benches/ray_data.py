"""What of prompts two actors of Ray Data find cached, by the order in which rows come to them.

    python -P benches/ray_data.py [--rows 2000] [--out benches/results/ray_data.json]

Needs `sgc[ray]`. Each row asks two things about one of some documents; rows arrive shuffled. Both
actors have an engine of the fake model, whose pool holds a few documents. "given" are Ray Data's
batches as they come, "batch" plans each batch by itself, "plan" sorts the dataset first. `one` is
the same rows as one planned batch on one engine here, and `best` what has to be computed at least:
each document once. Runs are in turn, `--reps` times; medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from ray.data import DataContext

import sgc
import sgc.ray

ROOT = Path(__file__).resolve().parent.parent
ORDERS = ("given", "batch", "plan")
WORDS = ("river", "stone", "letter", "window", "harbour", "winter", "copper", "garden")


@sgc.function
def asked(s, document: str, question: str):
    s += "Read this and answer.\n" + document + "\nQuestion: " + question + "\nAnswer:"
    s += sgc.gen("answer", max_tokens=8) + "\nWhy?" + sgc.gen("why", max_tokens=8)


def rows_of(n: int, n_documents: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    documents = [
        f"Document {i}: " + " ".join(draw.choice(WORDS) for _ in range(400))
        for i in range(n_documents)
    ]
    rows = [
        {"custom_id": f"row-{i}", "document": documents[i % n_documents],
         "question": f"what is said of {i}?"}
        for i in range(n)
    ]  # fmt: skip
    draw.shuffle(rows)
    return rows


def on_ray(rows: list[dict[str, Any]], order: str, options: argparse.Namespace) -> dict[str, Any]:
    dataset = ray.data.from_items(rows, override_num_blocks=8)
    start_s = time.perf_counter()
    found = sgc.ray.map_batches(
        asked, dataset, model="fake", serve={"pool_tokens": options.pool}, concurrency=2,
        num_cpus=0.5, batch_size=options.batch, order=order, seed=1,
    ).take_all()  # fmt: skip
    wall_s = time.perf_counter() - start_s
    assert len({row["key"] for row in found}) == len(found) == len(rows)
    assert not [row for row in found if row["error"]]
    return told([row["prompt_tokens"] for row in found], [row["cached_tokens"] for row in found],
                wall_s)  # fmt: skip


def on_one(rows: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    given = [{name: row[name] for name in ("document", "question")} for row in rows]
    with sgc.Runtime("fake", pool_tokens=options.pool) as engine:
        start_s = time.perf_counter()
        states = asked.compile().run_batch(given, backend=engine, seed=1)
        stats = [state.result().stats for state in states]
        wall_s = time.perf_counter() - start_s
    return told([each.prompt_tokens for each in stats], [each.cached_tokens for each in stats],
                wall_s)  # fmt: skip


def told(prompts: list[int], cached: list[int], wall_s: float) -> dict[str, Any]:
    return {
        "prompt_tokens": sum(prompts),
        "computed_tokens": sum(prompts) - sum(cached),
        "cached_share": round(sum(cached) / sum(prompts), 4),
        "wall_s": round(wall_s, 1),
    }


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]} | {"runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--documents", type=int, default=80)
    parser.add_argument("--pool", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/ray_data.json")
    options = parser.parse_args()
    rows = rows_of(options.rows, options.documents, options.seed)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (*ORDERS, "one")}
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(
            num_cpus=2, object_store_memory=200 << 20, include_dashboard=False, _temp_dir=folder,
            log_to_driver=False, logging_level="error",
        )  # fmt: skip
        context = DataContext.get_current()
        context.enable_progress_bars, context.default_hash_shuffle_parallelism = False, 8
        for _ in range(options.reps):
            for order in ORDERS:
                runs[order].append(on_ray(rows, order, options))
                print(order, json.dumps(runs[order][-1]), flush=True)
            runs["one"].append(on_one(rows, options))
            print("one", json.dumps(runs["one"][-1]), flush=True)
        ray.shutdown()
    found = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "versions": {name: version(name) for name in ("sgc", "ray")}
        | {"python": platform.python_version()},
        "load": os.getloadavg(),
        "options": {n: v for n, v in vars(options).items() if n != "out"},
        **{name: median(each) for name, each in runs.items()},
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
