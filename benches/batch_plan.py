"""Batches in the order of their plan: computed prompt tokens beside the offline optimum.

    python -P benches/batch_plan.py [--rows 96] [--seeds 2] [--pools 1200,2000] [--model fake]
        [--shapes chat,…] [--out FILE.json]

It uses the real server, tree and scheduler, with a pool of a few rows. *given*: rows start in the
given order, which is random. *order*: rows start in the plan's order, without a limit by the pool.
*plan*: also, and only as many run at once as fit in most of the pool. `engine/offline.py`, which
knows nothing of the engine, counts the optimum from the requests. The second part plans the rows of
a table, with and without reordered fields.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "engine"))

import bars
from batch_shapes import SHAPES, TABLE, Shape
from request_tokens import best_of

import sgc
from sgc.planning import room
from sgc.runs.endpoint import Endpoint
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.tokenizer import load_tokenizer

WAYS = ("given", "order", "plan")


@contextmanager
def way(name: str) -> Iterator[dict[str, Any]]:
    """Sets up one of the WAYS to run a batch; yields the batch's options."""
    before = room.PART_OF_POOL
    room.PART_OF_POOL = before if name == "plan" else math.inf
    try:
        yield {"order": "given" if name == "given" else "plan"}
    finally:
        room.PART_OF_POOL = before


def measure(
    shape: Shape, rows: list[dict[str, Any]], engine: Endpoint, name: str, **options: Any
) -> dict[str, Any]:
    """Runs a batch on an empty cache: its prompt tokens, computed tokens, optimum and seconds."""
    tokenizer = load_tokenizer(DEFAULT_FOLDER)
    engine.flush_cache()
    with way(name) as chosen:
        start_s = perf_counter()
        states = shape.program.run_batch(
            rows, backend=engine, temperature=0, **{**chosen, **options}
        )
        seconds = perf_counter() - start_s
    assert all(state.how == "compiled" for state in states)
    requests = [request for state in states for request in state.result().requests]
    asked = [request for request in requests if not request.usage.from_shared]
    best = best_of(asked, tokenizer)
    cached = sum(request.usage.cached_tokens for request in asked)
    return {
        "prompt_tokens": best.prompt_tokens,
        "computed": best.prompt_tokens - cached,
        "optimum": best.prompt_tokens - best.cached_tokens,
        "seconds": round(seconds, 2),
    }


def orders(
    n: int, seeds: int, model: str | None, pools: list[int], shapes: dict[str, Shape]
) -> list[dict[str, Any]]:
    found = []
    for pool in pools:
        for name, shape in shapes.items():
            for seed in range(seeds):
                row: dict[str, Any] = {"shape": name, "pool": pool, "seed": seed, "rows": n}
                rows = shape.rows(seed, n)
                for each in WAYS:
                    with sgc.Runtime(model, pool_tokens=pool) as engine:
                        got = measure(shape, rows, engine, each)
                    row |= {key: got[key] for key in ("prompt_tokens", "optimum")}
                    row |= {each: got["computed"], f"{each}_s": got["seconds"]}
                row["is_optimum"] = row["plan"] == row["optimum"]
                found.append(row)
                print(_line(row), flush=True)
    return found


def _line(row: dict[str, Any]) -> str:
    ways = "  ".join(f"{name} {row[name]:6} ({row[f'{name}_s']:5.2f} s)" for name in WAYS)
    mark = "=" if row["is_optimum"] else "!"
    return f"{row['shape']:22} pool {row['pool']:5}  {ways}  {mark} optimum {row['optimum']:6}"


def tables(n: int, seeds: int, model: str | None, pool: int) -> list[dict[str, Any]]:
    """Computed prompt tokens of reviews: as given, planned, and planned with reordered fields."""
    found = []
    for seed in range(seeds):
        rows = TABLE.rows(seed, n)
        row: dict[str, Any] = {"rows": n, "seed": seed, "pool": pool}
        for name, options in (
            ("given", {}),
            ("plan", {}),
            ("fields", {"reorder_fields": True}),
        ):
            with sgc.Runtime(model, pool_tokens=pool) as engine:
                got = measure(
                    TABLE, rows, engine, "given" if name == "given" else "plan", **options
                )
            row |= {name: got["computed"], f"{name}_s": got["seconds"]}
            row |= {"prompt_tokens": got["prompt_tokens"], f"{name}_optimum": got["optimum"]}
        found.append(row)
        print(
            f"table of {n} rows, {row['prompt_tokens']} prompt tokens: computed as given "
            f"{row['given']}, planned {row['plan']}, fields reordered {row['fields']} "
            f"({row['plan'] / row['fields']:.2f} times fewer than planned)",
            flush=True,
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--model", help="of the engine; without it the model that ships")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pools", default="1200,2000", help="tokens of each pool")
    parser.add_argument("--table-rows", type=int, default=384)
    parser.add_argument("--shapes", help="some of them; without it all")
    options = parser.parse_args()
    pools = [int(pool) for pool in options.pools.split(",")]
    wanted = options.shapes.split(",") if options.shapes else [*SHAPES]
    shapes = {name: SHAPES[name] for name in wanted}
    rows = orders(options.rows, options.seeds, options.model, pools, shapes)
    reviews = tables(options.table_rows, options.seeds, options.model, pools[-1])
    if options.out:
        found = {"rows": rows, "tables": reviews}
        options.out.write_text(json.dumps(found, indent=1) + "\n")
        shown = [row for row in rows if row["pool"] == pools[0] and row["seed"] == 0]
        bars.draw(
            options.out.with_suffix(".png"),
            f"Computed prompt tokens over the offline optimum's; {options.rows} rows, "
            f"a pool of {pools[0]} tokens",
            [row["shape"] for row in shown],
            {name: [row[name] / row["optimum"] for row in shown] for name in WAYS},
            "times the optimum",
        )
    if not all(row["is_optimum"] for row in rows):
        sys.exit("a planned batch computed more than the optimum")


if __name__ == "__main__":
    main()
