"""What the masks of a constraint cost: one that forces and forbids nothing, beside none.

    python -P benches/generation/mask_cost.py [--models S,M] [--reps 16] [--out FILE.json]

`(?s:.*)` allows every text, so each token is drawn under a mask and none is forced. Both arms make
128 tokens per request; they run in turn, and ratios are within a repetition.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from generation import serving
from generation.cases import Run, ask, prompts_of, short, unconstrained
from generation.serving import bars
from summary import paired_ratio

from sgc.runtime.executor.backends.engine.backend import EngineBackend

MASKED, FREE = "masked", "unconstrained"
BATCHES = (1, 16)
N_TOKENS = 128
ANY = r"(?s:.*)"


async def mask_rep(backend: EngineBackend, batch: int, rep: int) -> dict[str, Run]:
    """Runs both arms: with a constraint that allows everything, and without."""
    found: dict[str, Run] = {}
    for arm in (MASKED, FREE) if rep % 2 else (FREE, MASKED):
        asked = {"regex": ANY} if arm == MASKED else {}
        samplings = [unconstrained(N_TOKENS, 7000 + 100 * rep + i, **asked) for i in range(batch)]
        offset = 10_000 if arm == FREE else 20_000
        found[arm] = await ask(backend, prompts_of(offset + rep, batch), samplings, batch)
    return found


def mask_figures(runs: Sequence[dict[str, Run]]) -> dict[str, Any]:
    assert all(len(g.ids) == N_TOKENS for run in runs for of in run.values() for g in of.found)
    ratios = [run[MASKED].seconds / run[FREE].seconds for run in runs]
    times, (low, high) = paired_ratio(np.array(ratios))
    return {
        "ms_a_step": {
            arm: short(1000 * statistics.median(run[arm].seconds / run[arm].steps for run in runs))
            for arm in runs[0]
        },
        "overhead_percent": short(100 * (times - 1)),
        "overhead_95": [short(100 * (low - 1)), short(100 * (high - 1))],
        "overhead_median": short(100 * (statistics.median(ratios) - 1)),
        "all": [short(each) for each in ratios],
    }


async def of_model(uri: str, model: str, reps: int) -> dict[str, Any]:
    """{batch: figures}; fewer repetitions for M, which is slow."""
    found = {}
    async with EngineBackend(uri) as backend:
        for batch in BATCHES:
            n = max(3, reps // 4) if model == "M" else reps
            runs = [await mask_rep(backend, batch, rep) for rep in range(-1, n)]
            found[f"batch {batch}"] = row = mask_figures(runs[1:])
            low, high = row["overhead_95"]
            print(
                f"{model}, batch {batch}: {row['overhead_percent']}% ({low} to {high}); a step "
                f"{row['ms_a_step']} ms",
                flush=True,
            )
    return found


def main() -> None:
    options = serving.common_arguments(__doc__, models="S,M", reps=16).parse_args()
    found: dict[str, dict[str, Any]] = {}
    for model in options.models.split(","):
        with serving.engine(model, options) as engine:
            found[model] = asyncio.run(of_model(engine.uri, model, options.reps))
    if options.out:
        serving.save(options.out, serving.report("mask_cost", options, models=found))
        rows = {f"{m}: {batch}": row for m, of in found.items() for batch, row in of.items()}
        bars.draw(
            options.out.with_suffix(".png"), "A step of decoding, with masks and without",
            list(rows),
            {arm: [row["ms_a_step"][arm] for row in rows.values()] for arm in (FREE, MASKED)},
            "ms a step",
        )  # fmt: skip


if __name__ == "__main__":
    main()
